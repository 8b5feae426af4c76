"""The style of dpframe's HTML.

Text has the colour of the surrounding page. Lines and fills have middle tones, which contrast with
white and with black. So the HTML is readable in light, dark and other themes of notebooks, and all
text remains where a page strips styles.
"""

PAGE_STYLE = """
body.dpf-page{margin:0;background:#ffffff;color:#1f2328}
.dpf-page .dpframe.dpframe{margin:0 auto;padding:1em 1.2em 3em;max-width:64em}
.dpf-page nav{display:flex;flex-wrap:wrap;gap:.2em 1.2em;font-size:.93em}
.dpf-page nav a{color:inherit;text-underline-offset:.2em}
.dpf-page h1{font-size:1.35em;margin:.6em 0 .4em}
.dpf-page:target details::details-content{content-visibility:visible;height:auto;block-size:auto}
@media (prefers-color-scheme:dark){body.dpf-page{background:#16191d;color:#d6dae0}}
@media print{body.dpf-page{background:#ffffff;color:#000000}.dpf-page nav{display:none}
.dpf-page details::details-content{content-visibility:visible;height:auto;block-size:auto}
.dpf-page .dpf-part,.dpf-page .dpf-warn{break-inside:avoid}}
"""
"""The additional style of separate pages: the colours that a fragment gets from its page."""

# The class is written twice to weigh more than the rules that notebooks have for tables.
STYLE = """
.dpframe.dpframe{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
color:inherit;max-width:72em;margin:.5em 0;overflow-wrap:anywhere;text-align:left}
.dpframe.dpframe code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",
monospace;color:inherit;background:rgba(128,128,128,.13);border:0;border-radius:3px;
padding:.1em .35em;white-space:pre-wrap}
.dpframe .dpf-head{border-bottom:2px solid #3f87c5;padding-bottom:.35em;margin-bottom:.7em}
.dpframe .dpf-name{font-size:1.15em;font-weight:600}
.dpframe .dpf-title{font-weight:600;margin:1.1em 0 .35em}
.dpframe .dpf-chapter{font-weight:600;margin:.9em 0 .2em}
.dpframe .dpf-decide{font-size:1.08em;font-weight:600}
.dpframe .dpf-part{display:grid;grid-template-columns:9.5em minmax(0,1fr);margin:.55em 0}
.dpframe .dpf-part>.dpf-title{margin:0}
.dpframe .dpf-part .dpf-bar{float:right;margin-top:.4em}
.dpframe .dpf-quiet{opacity:.8}
.dpframe .dpf-warn{border-left:4px solid #cf7f1b;background:rgba(207,127,27,.12);padding:.4em .8em;
margin:.7em 0}
.dpframe .dpf-warn ul{margin:.1em 0}
.dpframe.dpframe ul,.dpframe.dpframe ol{margin:.15em 0;padding-left:1.7em}
.dpframe.dpframe li{margin:.15em 0}
.dpframe.dpframe p{margin:.15em 0}
.dpframe.dpframe p.dpf-remark{margin:.4em 0 .6em}
.dpframe details>summary{cursor:pointer}
.dpframe .dpf-scroll{overflow-x:auto}
.dpframe.dpframe table{border-collapse:collapse;border:0;margin:.2em 0;font-size:inherit;
color:inherit;background:transparent}
.dpframe.dpframe tbody tr,.dpframe.dpframe thead tr{background:transparent;border:0}
.dpframe.dpframe td,.dpframe.dpframe th{text-align:left;vertical-align:top;border:0;
padding:.25em .9em .25em 0;font-weight:400;white-space:normal;overflow-wrap:break-word}
.dpframe.dpframe thead th{border-bottom:1px solid rgba(128,128,128,.55);font-size:.88em;opacity:.8;
vertical-align:bottom;white-space:nowrap}
.dpframe.dpframe thead th.dpf-over{text-align:center;padding-bottom:.1em}
.dpframe.dpframe tbody tr.dpf-line>td{border-top:1px solid rgba(128,128,128,.28)}
.dpframe.dpframe tbody tr.dpf-line:first-child>td{border-top:0}
.dpframe.dpframe td.dpf-number,.dpframe.dpframe th.dpf-number{text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}
.dpframe.dpframe td.dpf-more{overflow-wrap:anywhere;padding-bottom:.5em;font-size:.93em}
.dpframe .dpf-bar{display:flex;height:.62em;border:1px solid rgba(128,128,128,.6);border-radius:3px;
overflow:hidden;margin:.45em 0 .3em;max-width:36em}
.dpframe .dpf-bar.dpf-small{display:inline-flex;width:4.5em;margin:0 .5em 0 0}
.dpframe .dpf-used{background:#3f87c5}
.dpframe .dpf-excess{background:#d2504a}
@media (max-width:40em){
.dpframe .dpf-part{display:block}
.dpframe.dpframe .dpf-cards thead{position:absolute;width:1px;height:1px;overflow:hidden;
clip-path:inset(50%)}
.dpframe.dpframe .dpf-cards table,.dpframe.dpframe .dpf-cards tbody{display:block;width:auto}
.dpframe.dpframe .dpf-cards tr{display:flex;flex-wrap:wrap}
.dpframe.dpframe .dpf-cards td{display:block;flex:0 0 100%;box-sizing:border-box;padding:.1em 0;
border:0}
.dpframe.dpframe .dpf-cards td:first-child{order:-2}
.dpframe.dpframe .dpf-cards tr.dpf-line>td:first-child{padding-top:.5em;
border-top:1px solid rgba(128,128,128,.28)}
.dpframe.dpframe .dpf-cards tr.dpf-line>td~td{border-top:0}
.dpframe.dpframe .dpf-cards td.dpf-number{text-align:left;white-space:normal}
.dpframe.dpframe .dpf-cards td[data-name]::before{content:attr(data-name);opacity:.72;
display:inline-block;min-width:6.5em}
.dpframe.dpframe .dpf-cards td[data-name] br{display:none}
.dpframe.dpframe .dpf-cards td:empty{display:none}
.dpframe.dpframe ul,.dpframe.dpframe ol{padding-left:1.2em}
}
"""

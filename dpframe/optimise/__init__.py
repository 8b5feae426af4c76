"""From a query to its plan: which vectors to draw, by which mechanisms, in which way.

Nothing here needs trust. `dpframe.soundness` and the kernel check each plan before it is
charged.
"""

"""One-line mistakes, planted one at a time: does a test see each of them?"""

"""A page as a browser would find it."""

from collections import Counter
from html.parser import HTMLParser

LOADING = ("src", "href", "xlink:href", "action", "formaction", "srcset", "poster", "data", "style")


class PageReader(HTMLParser):
    """Elements, attributes and text of a page as a browser would find them."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.texts, self.scripts = Counter(), [], [], []
        self.open = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        (self.scripts if self.open[-1:] == ["script"] else self.texts).append(data)

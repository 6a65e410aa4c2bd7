"""Clicks that a person needs, counted where they are made."""

from playwright.sync_api import Locator


class ClickCounter:
    """Clicks and counts."""

    def __init__(self) -> None:
        self.count = 0

    def click(self, target: Locator) -> None:
        """Click once."""
        self.count += 1
        target.click()

    def choose(self, menu: Locator, label: str) -> None:
        """Choose an entry of a menu: one click opens it, one chooses."""
        self.count += 2
        menu.select_option(label=label)

"""The reply page in a real browser: headless Chromium, as wide as a phone."""

"""The tiny agent: it repeats its task in capitals."""

import sys

print("say", sys.stdin.read().strip().upper())
print("done")

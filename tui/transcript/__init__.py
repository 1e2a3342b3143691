"""The transcript pane: the files of the shown run as rows, of which only those on the screen exist; finding in them.

The deck shows `pane` and `search`, commands use the modules that find, go to times and export. It gets what it shows
from `feed` in pieces, and knows nothing of presets, of the list of runs, or of the engine itself.
"""

"""The transcript pane: the files of the shown run as rows, of which only those on the screen exist."""

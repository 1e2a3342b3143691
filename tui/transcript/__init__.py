"""The transcript pane: the shown run's files as rows, created only for the screen; and searching them.

The deck shows `pane` and `search`, commands use the modules that find, go to times and export. It gets its content from
`feed` in pieces, and does not know presets, the list of runs, or the engine.
"""

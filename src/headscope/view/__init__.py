"""Head table -> what people read: figures, pages, tables in files, lines on the terminal. No torch here.

==============  =============================================================================
`figures`       pictures of head tables, comparisons and runs
`page`          ``atlas.html``: the grid of heads, the reported heads, the figures
`frames`        a head table as data frames: the CSV files
`terminal`      a head table on the terminal; `runs` and `tuned` for several runs
`comparison`    a comparison in words: a page, a summary on the terminal, CSV files
`reports`       the reported heads in rows: what the page and the terminal both show
`verdicts`      what was found in sentences; `headings`, how a table is headed
==============  =============================================================================
"""

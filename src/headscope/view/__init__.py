"""Head table -> what people read: figures, pages, tables in files, lines on the terminal. No torch here.

===================  =============================================================================
`figures`            pictures of head tables, comparisons and runs
`page`               ``atlas.html``: the grid of heads, the reported heads, the figures
`table_frames`       a head table as data frames: the CSV files
`table_report`       a head table on the terminal; `runs_report` and `tuned_report` for several runs
`comparison_report`  a comparison in words: a page, a summary on the terminal, CSV files
`reports`            the reported heads in rows: what the page and the terminal both show
`verdicts`           results in sentences; `headings`, how a table is headed
===================  =============================================================================
"""

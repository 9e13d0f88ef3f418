"""Everything that shows a head table to people: figures, pages, CSV files, lines on the terminal. No torch here.

===================  =============================================================================
`figures`            figures of head tables, comparisons and runs
`page`               ``atlas.html``: the grid of heads, the reported heads, the figures
`table_frames`       a head table as data frames, for CSV files
`table_report`       a head table on the terminal; `runs_report` and `tuned_report` for several runs
`comparison_report`  a comparison as a page; `comparison_summary`, on the terminal; `comparison_frames`, for CSV files
`reports`            the reported heads in rows, for the page and the terminal
`verdicts`           results in sentences; `headings`, the names of a table's model and corpus
===================  =============================================================================
"""

"""Guards: what is checked of a file that people hand to one another, before it is read.

path --`formats`--> a regular file that is not too large --> its sizes, as it declares them, before room is made for
them: `archives` (arrays of NumPy), `tensors` (safetensors), `lines` (texts, gzipped or not), `gguf`, and HDF5 in
`headscope.netcdf`.
"""

"""Guards: checks of a file from another person before it is read.

path --`formats`--> a regular file that is not too large --> its declared sizes, before memory is allocated:
`archives` (arrays of NumPy), `tensors` (safetensors), `lines` (texts, gzipped or not), `gguf`, and HDF5 in
`headscope.netcdf`.
"""

"""A loaded model, a folder, a hub id, a GGUF file, an adapter or saved attention -> `Model`."""

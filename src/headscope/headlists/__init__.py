"""Lists of heads to hand on: headscope's own ``heads.json``, and the files of other tools.

===================  ===========================================================================================
`head_list`          ``heads.json``: heads with scores and intervals, and their model and corpus
`duo_attention`      DuoAttention's ``full_attention_heads.tsv``: a number for each key/value head
`retrieval_heads`    the JSON of Retrieval_Head: scores of each head, one for each detection
`alignment_heads`    Whisper's ``alignment_heads``: the heads of the cross-attention that follow the sound
`packed_heads`       the same as openai-whisper packs it, without the number of layers
`json_file`          a JSON file whose objects have no repeated keys
`list_formats`       the format of a file by its content
===================  ===========================================================================================

Other tools count layers and heads from 0; a `HeadList` counts from 1, like all of headscope.
"""

from headscope.headlists.head_list import HeadEntry, HeadList, ListedModel, read_head_list, write_head_list

__all__ = ["HeadEntry", "HeadList", "ListedModel", "read_head_list", "write_head_list"]

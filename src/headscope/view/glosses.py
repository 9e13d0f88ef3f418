"""The names of the relations of Universal Dependencies, written out (https://universaldependencies.org/u/dep)."""

GLOSSES = {
    "acl": "clausal modifier of a noun", "advcl": "adverbial clause", "advmod": "adverbial modifier",
    "amod": "adjectival modifier", "appos": "apposition", "aux": "auxiliary", "case": "case marker, preposition",
    "cc": "coordinating conjunction", "ccomp": "clausal complement", "clf": "classifier", "compound": "compound",
    "conj": "conjunct", "cop": "copula", "csubj": "clausal subject", "dep": "unspecified dependency",
    "det": "determiner", "discourse": "discourse element", "dislocated": "dislocated element", "expl": "expletive",
    "fixed": "fixed multiword expression", "flat": "flat expression, name", "goeswith": "part of a split word",
    "iobj": "indirect object", "list": "list", "mark": "marker of a clause", "nmod": "nominal modifier",
    "nsubj": "nominal subject", "nummod": "numeric modifier", "obj": "direct object", "obl": "oblique nominal",
    "orphan": "orphan of an ellipsis", "parataxis": "parataxis", "punct": "punctuation",
    "reparandum": "overridden disfluency", "root": "root of the sentence", "vocative": "vocative",
    "xcomp": "open clausal complement",
}  # fmt: skip


def explain_relation(name: str) -> str:
    """The name of a relation written out, of a subtype that of its relation; empty of what is no such relation."""
    return GLOSSES.get(name.partition(":")[0], "")

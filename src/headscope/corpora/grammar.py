"""English sentences from a small grammar, with gold annotation that is exact by construction.

A rule of the grammar (a method of `Speaker`) returns a `Node`: a word and the words that depend on
it. `linearise` turns the tree into a `Document` with

- ``dependency`` links and ``upos`` spans as in Universal Dependencies v2: a copular predicate is
  the head of its clause; a comma belongs to the conjunct or dependent that it sets off.
- ``mention`` spans: whole noun phrases, with the ``'s`` of a possessor, without a preposition.
  No other word in a sentence agrees with a chain's pronoun in gender and number, so no reader has to
  guess. Relative pronouns, and entities that are mentioned once, are not annotated.
- ``cue`` (*not, n't, never, no*) and ``scope`` spans in the spirit of *SEM-2012: the scope is every
  word of the smallest finite clause around the cue, with its subject, auxiliaries, complement and
  relative clauses; without the cue, punctuation, adverbial and coordinated clauses, and the
  conjunction that joins the clause to another. A scope with a gap is several spans.

Phrases are where a reader would attach them: for example, nouns and verbs take different prepositions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from headscope.corpora.document import Document, Link, Span, merge_into_spans
from headscope.corpora.written_text import write_sentences

T = TypeVar("T")

# fmt: off
KINDS = {  # for each kind: its pronouns, its names, its nouns
    "woman": ("she", "Mary Anna Emma Alice Sarah Helen", "queen aunt sister mother girl nun grandmother duchess"),
    "man": ("he", "John Peter Paul David Oliver Simon", "king uncle brother father boy monk grandfather prince"),
    "person": ("she he", "", "doctor teacher student farmer lawyer artist engineer pilot singer guest"),
    "animal": ("it it it she he", "", "dog cat horse elephant owl rabbit goat eagle"),
    "thing": ("it", "", "book letter umbrella picture apple clock lamp bottle piano basket map ring envelope"),
    "place": ("it", "Paris London Oslo Rome Athens Cairo", "garden kitchen village airport tower museum forest office"),
    "event": ("it", "", "war wedding meeting storm concert exam dinner election"),
}
PRONOUN_CHOICES = {(kind, plural): "they" if plural else KINDS[kind][0] for kind in KINDS for plural in (False, True)}
PEOPLE = ["woman", "man", "person"]
ANIMATE = [*PEOPLE, "animal"]
VISIBLE = [*ANIMATE, "thing"]
PRONOUNS = {"she": "she her her", "he": "he him his", "it": "it it its", "they": "they them their"}
DETERMINERS = {False: "the the the a a a this that", True: "the the these those - -"}
NUMBERS = "two three four five seven eleven"
ADJECTIVES = ["beautiful strange famous awful wonderful", "small enormous tall", "old new", "red green orange grey"]
COMPOUNDS = "family city country farm school state"
FEELINGS = "happy tired hungry angry ill proud nervous afraid calm"
QUALITIES = "expensive dirty heavy empty ready wet important useless"
DEGREES = "very quite extremely rather"
FREQUENCIES = "often usually sometimes still finally always"
MANNERS = "quietly slowly carefully happily suddenly"
PREPOSITIONS = {"place": "in behind", "event": "before after during"}  # of verbs
SUBORDINATORS = "because although if while after before since"
CUES = ["not", "n't", "never", "no"]
NEGATIONS = [*[""] * 7, *CUES]
OUTSIDE = ["mark", "cc", "conj", "advcl"]  # outside of the scope of a negation, below the predicate of its clause

VERBS = {  # by the words that follow; after *be*, `adj` or `in` is the predicate; `by` follows a passive
    "": "sleep laugh wait arrive dance work return",
    "obj": "see help follow find remember love describe visit admire know avoid",
    "iobj obj": "give send offer", "obj to": "give send offer",
    "obj prt": "pick-up call-back throw-away knock-over track-down look-up",
    "prt obj": "pick-up call-back throw-away knock-over track-down look-up",
    "adj": "be be be be seem look remain", "obj adj": "make find consider", "in": "be be remain", "by": "be",
    "inf": "want hope decide refuse promise", "obj inf": "ask persuade order allow force",
    "that": "say think believe know remember explain",
}
CLAUSAL = ["inf", "obj inf", "that"]
SLOTS = {"obj": ("obj", "", VISIBLE), "iobj": ("iobj", "", PEOPLE), "to": ("obl", "to", PEOPLE),
         "by": ("obl:agent", "by", ANIMATE), "in": ("obl", "in", ["place"])}  # relation, preposition, kinds
OBJECTS = {"iobj obj": ["thing"], "obj to": ["thing"], "obj adj": ANIMATE, "obj inf": ANIMATE}  # kinds of objects
FORMS = ["base", "present", "past", "participle"]
IRREGULAR = {forms.split()[0]: forms.split() for forms in (
    "be is was been", "find finds found found", "give gives gave given", "know knows knew known",
    "make makes made made", "say says said said", "see sees saw seen", "send sends sent sent",
    "sleep sleeps slept slept", "think thinks thought thought", "throw throws threw thrown",
)}
TENSES = {"past": ["past", "past", "past", "had participle", "would base", "could base", "could have participle"],
          "present": ["present", "present", "present", "has participle", "will base", "can base", "should base"]}
PLURAL_VERBS = {"is": "are", "was": "were", "has": "have", "does": "do"}
CONTRACTED = {"will": "wo", "can": "ca"}  # before n't
# fmt: on


@dataclass(frozen=True, slots=True)
class Referent:
    """The person or thing that a noun phrase means. A hero has a pronoun, which refers to it and names its chain."""

    word: str = ""
    kind: str = ""
    plural: bool = False
    named: bool = False
    pronoun: str = ""


NOBODY = Referent()


@dataclass(frozen=True, slots=True)
class Node:
    """A word, its relation to its head, and the words that depend on it, in order."""

    word: str
    upos: str
    relation: str
    before: tuple["Node", ...] = ()
    after: tuple["Node", ...] = ()
    referent: Referent = NOBODY

    def grow(self, *before: "Node", after: Iterable["Node"] = ()) -> "Node":
        """Return the same word with more dependents: `before` left of all others, `after` right of all others."""
        return replace(self, before=(*before, *self.before), after=(*self.after, *after))


@dataclass(slots=True)
class Speaker:
    """Speaks one sentence: the rules of the grammar, and the features on which its phrases must agree.

    All randomness comes from ``random.random()``, the only method whose numbers Python promises to keep. The `weight`
    of a phrase is 0 if it is bare, 1 with possessors, prepositional phrases and coordination, 2 also with
    relative clauses; at the very end of a sentence it is 3, and complement clauses are possible.
    """

    random: Random
    tense: str = "past"
    heroes: list[Referent] = field(default_factory=list)  # the people and things to which pronouns will refer
    known: list[Referent] = field(default_factory=list)  # heroes that have been introduced
    repeated: Referent = NOBODY  # the hero whose noun is repeated instead of a pronoun
    used: set[str] = field(default_factory=set)  # nouns: a second *dog* would have to be the same dog

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options at random."""
        return options[int(self.random.random() * len(options))]

    def word(self, words: str, upos: str, relation: str, rate: float = 1.0) -> tuple[Node, ...]:
        """Return a node of one of the words with the probability `rate`; otherwise an empty tuple."""
        return (Node(self.pick(words.split()), upos, relation),) if self.chance(rate) else ()

    def introduce(self, kinds: Sequence[str], names: bool = True) -> Referent:
        """Return a new person or thing of one of the kinds, to which the pronouns of the heroes cannot refer."""
        pronouns = {hero.pronoun for hero in self.heroes}
        free = [key for key in PRONOUN_CHOICES if key[0] in kinds and not pronouns & set(PRONOUN_CHOICES[key].split())]
        kind, plural = self.pick([*free, *(key for key in free if not key[1])])
        _, proper, common = KINDS[kind]
        named = names and proper != "" and not plural and self.chance(0.5)
        words = (proper if named else common).split()
        word = self.pick([word for word in words if word not in self.used] or words)
        self.used.add(word)
        return Referent(word + ("es" if word.endswith("s") else "s") * plural, kind, plural, named)

    def noun_phrase(self, who: Referent, relation: str, weight: int = 0, case: str = "", article: str = "") -> Node:
        """Return a noun phrase: *she*; *Mary*; *in the very old city towers*; *two kings and a queen*."""
        node = Node(who.word, "PROPN" if who.named else "NOUN", relation, referent=who)
        if who in self.known and who != self.repeated:
            form = PRONOUNS[who.pronoun].split()[0 if relation.startswith("nsubj") else 1]
            node = Node(form, "PRON", relation, referent=who)
        elif who in self.known:
            self.repeated = NOBODY
            node = node if who.named else node.grow(Node("the", "DET", "det"))
        elif not who.named:
            before = (*self.determiners(who, weight, article), *self.modifiers(who))
            owned = any(node.relation == "nmod:poss" for node in before)
            node = node.grow(*before, after=self.postmodifiers(who, weight, owned))
            plain = weight and not (node.after or who.pronoun or article)
            if plain and "they" not in [hero.pronoun for hero in self.heroes] and self.chance(0.12):
                alike = ANIMATE if who.kind in ANIMATE else [who.kind]
                second = self.noun_phrase(self.introduce(alike), "conj").grow(Node("and", "CCONJ", "cc"))
                node = replace(node, referent=replace(who, plural=True)).grow(after=[second])
        if who.pronoun and who not in self.known:
            self.known.append(who)
        return node.grow(Node(case, "ADP", "case")) if case else node

    def determiners(self, who: Referent, weight: int, article: str) -> Iterator[Node]:
        """Yield determiners: *the two*, *her*, *the old king 's*."""
        if weight and not article and self.chance(0.22):
            known = [hero for hero in self.known if hero != self.repeated]
            if known:
                hero = self.pick(known)
                yield Node(PRONOUNS[hero.pronoun].split()[2], "PRON", "nmod:poss", referent=hero)
            else:
                owner = self.noun_phrase(self.introduce(PEOPLE), "nmod:poss")
                yield owner.grow(after=[Node("'" if owner.referent.plural else "'s", "PART", "case")])
            return
        article = article or self.pick(DETERMINERS[who.plural].split())
        if article != "-":
            yield Node(article, "DET", "det")
        if who.plural and article != "no":
            yield from self.word(NUMBERS, "NUM", "nummod", 0.35)

    def modifiers(self, who: Referent) -> Iterator[Node]:
        """Yield modifiers: *very strange*, *small old*, *small and old*, *city* (dogs)."""
        ranks = ADJECTIVES[:1] if who.kind == "event" else ADJECTIVES
        words = [node for rank in ranks for node in self.word(rank, "ADJ", "amod", 0.24)]
        if len(words) == 2 and self.chance(0.35):
            words = [words[0].grow(after=[replace(words[1], relation="conj").grow(Node("and", "CCONJ", "cc"))])]
        elif words and words[0].word in ADJECTIVES[0]:
            words[0] = words[0].grow(*self.word(DEGREES, "ADV", "advmod", 0.25))
        yield from (*words, *self.word(COMPOUNDS, "NOUN", "compound", 0.2))

    def postmodifiers(self, who: Referent, weight: int, owned: bool) -> Iterator[Node]:
        """Yield postmodifiers: (the dog) *from Paris*, *that slept*, *that she saw*, *she saw*."""
        if weight >= 1 and who.kind != "event" and self.chance(0.2):
            case = self.pick(["from", "near"] if owned else ["of", "of", "from", "near"])
            yield self.noun_phrase(self.introduce(PEOPLE if case == "of" else ["place"]), "nmod", case=case)
        elif weight >= 2 and self.chance(0.3):
            human, negation = who.kind in PEOPLE, self.pick(NEGATIONS[:-1])
            if self.chance(0.55):
                (relative,) = self.word("who that" if human else "which that", "PRON", "nsubj")
                relative = replace(relative, referent=replace(who, pronoun=""))
                yield self.predicate("acl:relcl", relative, NOBODY, negation, weight=0)
            else:
                relatives = self.word("whom that" if human else "which that", "PRON", "obj", 0.8)
                known = [hero for hero in self.known if hero.kind in ANIMATE]
                subject = self.noun_phrase(self.pick(known) if known else self.introduce(ANIMATE), "nsubj")
                *group, verb = self.verb_group(self.pick(VERBS["obj"].split()), subject, negation, "acl:relcl")
                yield verb.grow(*relatives, subject, *group)

    def verb_group(self, verb: str, subject: Node, negation: str, relation: str) -> list[Node]:
        """Return auxiliaries, a negation and a verb with its relation: *had not slept*, *could never have been*."""
        *auxiliaries, form = self.pick(TENSES[self.tense]).split()
        if negation in ("not", "n't") and verb != "be" and not auxiliaries:
            auxiliaries, form = ["did" if self.tense == "past" else "does"], "base"
        words = [*auxiliaries, inflect(verb, form, subject.referent.plural)]
        if subject.referent.plural:
            words[0] = PLURAL_VERBS.get(words[0], words[0])
        if negation == "n't":
            words[0] = CONTRACTED.get(words[0], words[0])
        group = [Node(word, "AUX", "aux") for word in words[:-1]]
        group.append(Node(words[-1], "AUX" if verb == "be" else "VERB", relation))
        after_finite = 1 if auxiliaries or verb == "be" else 0
        if negation in ("not", "n't", "never"):
            group.insert(after_finite, Node(negation, "ADV" if negation == "never" else "PART", "advmod"))
        elif not negation:
            group[after_finite:after_finite] = self.word(FREQUENCIES, "ADV", "advmod", 0.15)
        return group

    def clause(self, relation: str, weight: int, about: Referent | None = None) -> Node:
        """Return a finite clause about `about`, a hero or a new referent; its last phrase has the weight `weight`."""
        first, second = (*self.heroes, NOBODY)[:2]
        roles = [(first, second), (first, second), (second, first), (first, NOBODY), (NOBODY, first)]
        subject, patient = (about, NOBODY) if about else self.pick(roles)
        negation = "" if patient.pronoun and patient not in self.known else self.pick(NEGATIONS)
        article = "no" if subject == NOBODY and negation == "no" and self.chance(0.5) else ""
        if subject == NOBODY:
            subject = self.introduce(ANIMATE if article else VISIBLE, names=not article)
        phrase = self.noun_phrase(subject, "nsubj", 2, article=article)
        return self.predicate(relation, phrase, patient, "" if article else negation, weight)

    def predicate(self, relation: str, subject: Node, patient: Referent, negation: str, weight: int) -> Node:
        """Return a clause: *was happy*, *was found by Mary*, *slept*, *gave Mary a book*, *threw it away*."""
        animate = subject.referent.kind in ANIMATE
        if not animate:
            patterns = ["by"] if patient.kind in ANIMATE else ["adj", "in", "by"]
        elif patient.pronoun:
            patterns = ["obj", "obj prt"] if patient.kind == "thing" else ["obj", "iobj obj", "obj inf", "by"]
        else:
            patterns = ["obj", "prt obj"] if negation == "no" else ["", "", "obj", "obj", "that", "that", *VERBS]
        pattern = self.pick([pattern for pattern in patterns if weight == 3 or pattern not in CLAUSAL])
        verb, _, particle = self.pick(VERBS[pattern].split()).partition("-")
        if negation == "no" and (patient.pronoun or "obj" not in pattern):
            negation = "never"
        role = relation if verb != "be" else "aux:pass" if pattern == "by" else "cop"
        group = self.verb_group(verb, subject, negation, role)
        if pattern == "by":
            group.append(Node(inflect(self.pick(VERBS["obj"].split()), "participle"), "VERB", relation))
            subject = replace(subject, relation="nsubj:pass")
        closed = pattern in CLAUSAL or pattern.endswith(("adj", "in"))
        tail = () if closed else self.circumstances(["event"] if pattern else ["place", "event"], 0.3)
        after: list[Node] = []
        for slot in pattern.split():
            end = weight if pattern.endswith(slot) and not tail else min(weight, 1)
            if slot == "prt":
                after.append(Node(particle, "ADP", "compound:prt"))
            elif slot == "adj":
                degree = self.word(DEGREES, "ADV", "advmod", 0.25)
                after += [node.grow(*degree) for node in self.word(FEELINGS if animate else QUALITIES, "ADJ", "xcomp")]
            elif slot in ("inf", "that"):
                after.append(self.complement_clause(slot))
            elif slot != "by" or patient.pronoun or self.chance(0.6):
                label, case, kinds = SLOTS[slot]
                kinds = OBJECTS.get(pattern, kinds) if slot == "obj" else kinds
                article = "no" if slot == "obj" and negation == "no" else ""
                who = patient if patient.kind in kinds else self.introduce(kinds, names=not article)
                after.append(self.noun_phrase(who, label, end, case, article))
        head = after.pop(0) if role == "cop" else group.pop()
        return replace(head, relation=relation).grow(subject, *group, after=[*after, *tail])

    def complement_clause(self, slot: str) -> Node:
        """Return a complement clause: (wanted) *to quietly find a dog*, (said) *that she knew*, (said) *she knew*."""
        if slot == "that":
            node = self.clause("ccomp", 2, self.pick(self.known or [NOBODY]))
            return node.grow(*self.word("that", "SCONJ", "mark", 0.75))
        verb = Node(self.pick(VERBS["obj"].split()), "VERB", "xcomp", self.word(MANNERS, "ADV", "advmod", 0.3))
        return verb.grow(Node("to", "PART", "mark"), after=[self.noun_phrase(self.introduce(VISIBLE), "obj", 2)])

    def circumstances(self, kinds: Sequence[str], rate: float) -> tuple[Node, ...]:
        """Return circumstances: *quietly*, *after the war*, both or nothing."""
        manner, kind = self.word(MANNERS, "ADV", "advmod", rate), self.pick(kinds)
        case, noun = self.pick(PREPOSITIONS[kind].split()), self.introduce([kind])
        return (*manner, self.noun_phrase(noun, "obl", 1, case)) if self.chance(rate) else manner

    def adverbial(self, weight: int) -> Node:
        """Return an adverbial clause: *because she slept*."""
        return self.clause("advcl", weight).grow(*self.word(SUBORDINATORS, "SCONJ", "mark"))

    def sentence(self) -> Node:
        """Return a main clause, perhaps with an adverbial clause before or after it, or with a second main clause."""
        for _ in range(2):
            hero = self.introduce(VISIBLE)
            self.heroes.append(replace(hero, pronoun=self.pick(PRONOUN_CHOICES[hero.kind, hero.plural].split())))
            if hero.plural or hero.kind not in ("woman", "man"):  # then no second hero: too few nouns would be left
                break
        double, closing = self.chance(0.3), self.chance(0.25)
        opening = [self.adverbial(2)] if self.chance(0.2) else self.circumstances(["place", "event"], 0.1)[-1:]
        opening = [node.grow(after=[Node(",", "PUNCT", "punct")]) for node in opening]
        main = self.clause("root", 2 if double else 1 if closing else 3).grow(*opening)
        if double:
            self.repeated = self.pick([*self.known, NOBODY, NOBODY])
            conjunction = (Node(",", "PUNCT", "punct"), *self.word("and and but yet", "CCONJ", "cc"))
            second = self.clause("conj", 1 if closing else 3).grow(*conjunction)
            main = main.grow(after=[second.grow(after=[self.adverbial(3)]) if closing else second])
        elif closing:
            main = main.grow(after=[self.adverbial(3)])
        return main.grow(after=[Node(".", "PUNCT", "punct")])


def inflect(verb: str, form: str, plural: bool = False) -> str:
    """Return a form of a verb: *sleep, sleeps, slept*; a plural subject has the base form in the present."""
    stem = verb.removesuffix("e")
    forms = IRREGULAR.get(verb, [verb, verb + "s", stem + "ed", stem + "ed"])
    return forms[FORMS.index("base" if plural and form == "present" and verb != "be" else form)]


def linearise(tree: Node, id: str) -> Document:
    """Return the document of a tree: its words in order, with their links and spans."""
    nodes: list[Node] = []
    heads: dict[int, int] = {}
    reach: dict[int, range] = {}  # the word with all its direct and indirect dependents, which are contiguous

    def lay_out(node: Node) -> int:
        start, children = len(nodes), [lay_out(child) for child in node.before]
        word = len(nodes)
        nodes.append(node)
        heads.update(dict.fromkeys([*children, *map(lay_out, node.after)], word))
        reach[word] = range(start, len(nodes))
        return word

    lay_out(tree)
    words = [node.word for node in nodes]
    for word in range(len(words) - 1):
        if words[word] == "a" and words[word + 1][0] in "aeiou":
            words[word] = "an"
    words[0] = words[0][0].upper() + words[0][1:]
    links = tuple(Link(word, heads[word], nodes[word].relation) for word in sorted(heads))
    spans = tuple(annotate_spans(nodes, heads, reach))
    return Document(id, tuple(words), links, spans, group=id, written=write_sentences(words))


def annotate_spans(nodes: list[Node], heads: dict[int, int], reach: dict[int, range]) -> Iterator[Span]:
    """Yield the spans of parts of speech, of entities that are mentioned twice or more, and of cues and scopes."""
    pronouns = [node.referent.pronoun for node in nodes]
    chains = [pronoun for pronoun in dict.fromkeys(pronouns) if pronoun and pronouns.count(pronoun) > 1]
    cues = [word for word, node in enumerate(nodes) if node.word in CUES]
    for word, node in enumerate(nodes):
        yield Span(word, word + 1, node.upos, "upos")
        if pronouns[word] in chains:
            start = reach[word][0] + (nodes[reach[word][0]].upos == "ADP")
            yield Span(start, reach[word][-1] + 1, str(chains.index(pronouns[word]) + 1), "mention")
        if word in cues:
            number, clause = str(cues.index(word) + 1), word
            yield Span(word, word + 1, number, "cue")
            while not any(heads.get(i) == clause and nodes[i].relation.startswith("nsubj") for i in reach[clause]):
                clause = heads[clause]
            outside = [i for i in reach[clause] if heads.get(i) == clause and nodes[i].relation in OUTSIDE]
            beyond = {word}.union(*(reach[i] for i in outside))
            scope = (i for i in reach[clause] if i not in beyond and nodes[i].upos != "PUNCT")
            yield from merge_into_spans(scope, number, "scope")


def generate_sentences(count: int = 2000, seed: int = 0) -> Iterator[Document]:
    """Yield `count` different sentences of 3 to 40 words; a seed always gives the same sentences in the same order."""
    random = Random(seed)
    hashes: set[int] = set()  # the words themselves would take far more memory
    while len(hashes) < count:
        speaker = Speaker(random, tense="past" if random.random() < 0.5 else "present")
        document = linearise(speaker.sentence(), f"grammar:{seed}:{len(hashes)}")
        if len(document.words) <= 40 and hash(document.words) not in hashes:
            hashes.add(hash(document.words))
            yield document

"""English sentences made by a small grammar, with gold annotation that is exact by construction.

A rule of the grammar (a method of `Speaker`) returns a `Node`, which is a word with the words that
depend on it. `linearise` reads the tree off as a `Document` with

- ``dependency`` links and ``upos`` spans as in Universal Dependencies v2: a copular predicate is
  the head of its clause; a comma belongs to the conjunct or dependent that it sets off.
- ``mention`` spans: whole noun phrases, with the ``'s`` of a possessor, without a preposition.
  Nothing else in a sentence agrees with a chain's pronoun in gender and number, so no reader has to
  guess. Relative pronouns, and entities that are mentioned once, are not annotated.
- ``cue`` (*not, n't, never, no*) and ``scope`` spans in the spirit of *SEM-2012: the scope is every
  word of the smallest finite clause around the cue, with its subject, auxiliaries, complement and
  relative clauses; without the cue, punctuation, adverbial and coordinated clauses, and the
  conjunction that joins the clause to another. It may have gaps: then it is several spans. The
  negations of a sentence are numbered from left to right.

So that gold is also what a reader would say, phrases stand where one attachment is natural: relative
and complement clauses end their clause, and nouns take other prepositions than verbs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from random import Random
from typing import TypeVar

from headscope.corpora.document import Document, Link, Span

T = TypeVar("T")
LONGEST = 40

# fmt: off
KINDS = {  # the pronouns that could take up one such thing, its names, its nouns
    "woman": ("she", "Mary Anna Emma Alice Sarah Helen", "queen aunt sister mother girl nun grandmother duchess"),
    "man": ("he", "John Peter Paul David Oliver Simon", "king uncle brother father boy monk grandfather prince"),
    "person": ("she he", "", "doctor teacher student farmer lawyer artist engineer pilot singer guest"),
    "animal": ("it she he", "", "dog cat horse elephant owl rabbit goat eagle"),
    "thing": ("it", "", "book letter umbrella picture apple clock lamp bottle piano basket map ring envelope"),
    "place": ("it", "Paris London Oslo Rome Athens Cairo", "garden kitchen village island tower museum forest office"),
    "event": ("it", "", "war wedding meeting storm concert exam dinner election"),
}
PEOPLE = ["woman", "man", "person"]
ANIMATE = [*PEOPLE, "animal"]
VISIBLE = [*ANIMATE, "thing"]
PRONOUNS = {"she": "she her her", "he": "he him his", "it": "it it its", "they": "they them their"}
DETERMINERS = {False: "the the the a a a this that every".split(), True: "the the these those some - -".split()}
NUMBERS = "two three four five seven eleven".split()
ADJECTIVES = "beautiful strange famous ugly clever, small enormous tall, old new, red green orange grey".split(", ")
FEELINGS = "happy tired hungry angry ill proud nervous afraid calm".split()
QUALITIES = "expensive dirty heavy empty ready wet important useless".split()
COMPOUNDS = "family city summer winter farm company".split()
DEGREES = "very quite extremely rather".split()
FREQUENCIES = "often usually sometimes still finally recently".split()
MANNERS = "quietly slowly carefully happily suddenly again".split()
PREPOSITIONS = {"place": ["in", "behind"], "event": ["before", "after", "during"]}  # of verbs
SUBORDINATORS = "because although if while after before since".split()
COORDINATORS = "and and but or".split()
CUES = ["not", "n't", "never", "no"]
NEGATIONS = [*[""] * 8, *CUES]

# Verbs by what follows them: `prt` is a particle, `inf` an infinitive, `that` a clause. With *be*, `adj`
# and `in` are themselves the predicate, and `by` follows a passive.
VERBS = {
    "": "sleep laugh sing wait arrive dance work leave return".split(),
    "obj": "see help follow find remember love describe visit protect know avoid".split(),
    "iobj obj": "give send show offer bring".split(), "obj to": "give send show offer bring".split(),
    "obj prt": "pick-up bring-back call-back wake-up take-away throw-away send-back".split(),
    "prt obj": "pick-up bring-back call-back wake-up take-away throw-away send-back".split(),
    "adj": "be be be be seem look remain".split(), "in": "be be remain".split(), "by": ["be"],
    "adv": "disappear return arrive".split(), "obj adj": "make keep find consider".split(),
    "inf": "want hope decide refuse promise".split(), "obj inf": "ask persuade order teach allow force".split(),
    "that": "say think believe know hear remember explain".split(),
}
CLAUSAL = ["inf", "obj inf", "that"]
FILLERS = {"iobj": PEOPLE, "to": PEOPLE, "by": ANIMATE, "in": ["place"]}  # the kinds of noun for a slot
OBJECTS = {"iobj obj": ["thing"], "obj to": ["thing"], "obj adj": ANIMATE, "obj inf": ANIMATE}  # and for an `obj`
STATIVES = "be know love want seem look believe see consider remember hear".split()
FORMS = ["base", "present", "past", "participle", "gerund"]
IRREGULAR = {forms.split()[0]: forms.split() for forms in (
    "be is was been being", "bring brings brought brought bringing", "find finds found found finding",
    "give gives gave given giving", "hear hears heard heard hearing", "keep keeps kept kept keeping",
    "know knows knew known knowing", "leave leaves left left leaving", "make makes made made making",
    "say says said said saying", "see sees saw seen seeing", "send sends sent sent sending",
    "show shows showed shown showing", "sing sings sang sung singing", "sleep sleeps slept slept sleeping",
    "take takes took taken taking", "teach teaches taught taught teaching", "think thinks thought thought thinking",
    "throw throws threw thrown throwing", "wake wakes woke woken waking",
)}
TENSES = {  # auxiliaries, and the form of the verb after them
    "past": "past, past, past, had participle, was gerund, could base, would base, could have participle".split(", "),
    "present": "present, present, present, has participle, is gerund, will base, can base, should base".split(", "),
}
PLURAL_VERBS = {"is": "are", "was": "were", "has": "have", "does": "do"}
CONTRACTED = {"will": "wo", "can": "ca"}  # before n't
# fmt: on


@dataclass(frozen=True, slots=True)
class Referent:
    """Who or what a noun phrase stands for. A hero's pronoun takes it up again, and names its chain."""

    word: str = ""
    kind: str = ""
    plural: bool = False
    named: bool = False
    pronoun: str = ""


NOBODY = Referent()


@dataclass(frozen=True, slots=True)
class Node:
    """A word, its relation to the word it depends on, and the words that depend on it, in order."""

    word: str
    upos: str
    relation: str
    before: tuple["Node", ...] = ()
    after: tuple["Node", ...] = ()
    referent: Referent = NOBODY


COMMA = Node(",", "PUNCT", "punct")


@dataclass(slots=True)
class Speaker:
    """Says one sentence: the rules of the grammar, and what its phrases must agree on.

    All chance comes from ``random.random()``, the one method whose numbers Python promises to keep.
    The `weight` of a phrase is 0 if it is bare, 1 with possessors, prepositional phrases and coordination,
    2 also with relative clauses; at the very end of a sentence it is 3, and there may be complement clauses.
    """

    random: Random
    tense: str = "past"
    heroes: list[Referent] = field(default_factory=list)  # whom pronouns will take up
    known: list[Referent] = field(default_factory=list)  # heroes that have been introduced
    repeated: Referent = NOBODY  # the hero whose noun comes again instead of a pronoun
    used: set[str] = field(default_factory=set)  # nouns: a second *dog* would have to be the same dog

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random.random() * len(options))]

    def maybe(self, probability: float, words: Sequence[str], upos: str, relation: str) -> tuple[Node, ...]:
        """One of these words, or none."""
        return (Node(self.pick(words), upos, relation),) if self.chance(probability) else ()

    def allows(self, kind: str, plural: bool) -> bool:
        """Whether no hero's pronoun could be misread as this."""
        return not any(hero.pronoun in readings(kind, plural) for hero in self.heroes)

    def draw(self, kinds: Sequence[str], names: float = 0.35) -> Referent:
        """Somebody or something new of one of these kinds, called by name (where there is one) at this rate."""
        kind, plural = self.pick([(k, p) for k in kinds for p in (False, False, True) if self.allows(k, p)])
        _, proper, common = KINDS[kind]
        named = proper != "" and not plural and self.chance(names)
        words = (proper if named else common).split()
        word = self.pick([word for word in words if word not in self.used] or words)
        self.used.add(word)
        return Referent(word + ("es" if word.endswith("s") else "s") * plural, kind, plural, named)

    def noun_phrase(self, who: Referent, relation: str, weight: int = 0, case: str = "", article: str = "") -> Node:
        """*she*; *Mary*; *behind the two very old city towers*; *her dog from Paris*; *the king and the queen*."""
        before: tuple[Node, ...] = (Node(case, "ADP", "case"),) if case else ()
        after: tuple[Node, ...] = ()
        if who in self.known and who != self.repeated:
            form = 0 if relation.startswith("nsubj") else 1
            return Node(PRONOUNS[who.pronoun].split()[form], "PRON", relation, before, referent=who)
        if who.named:
            node = Node(who.word, "PROPN", relation, before, referent=who)
        elif who in self.known:
            node = Node(who.word, "NOUN", relation, (*before, Node("the", "DET", "det")), referent=who)
        else:
            before += (*self.determiners(who, weight, article), *self.modifiers())
            after = self.postmodifiers(who, weight)
            node = Node(who.word, "NOUN", relation, before, after, who)
        self.known += [who] if who.pronoun else []
        self.repeated = NOBODY if who == self.repeated else self.repeated
        if weight and not (after or who.pronoun or article) and self.allows("thing", plural=True) and self.chance(0.12):
            second = conjunct(self.noun_phrase(self.draw(VISIBLE), "conj"), "and")
            node = replace(node, after=(second,), referent=replace(who, plural=True))
        return node

    def determiners(self, who: Referent, weight: int, article: str) -> Iterator[Node]:
        """*the two*, *her*, *the old king 's*."""
        if weight and not article and self.chance(0.22):
            if self.known:
                hero = self.pick(self.known)
                yield Node(PRONOUNS[hero.pronoun].split()[2], "PRON", "nmod:poss", referent=hero)
            else:
                owner = self.noun_phrase(self.draw(PEOPLE), "nmod:poss")
                yield replace(owner, after=(Node("'" if owner.referent.plural else "'s", "PART", "case"),))
            return
        choices = [word for word in DETERMINERS[who.plural] if not (who.pronoun and word in ("every", "some"))]
        article = article or self.pick(choices)
        if article != "-":
            yield Node(article, "DET", "det")
        if who.plural and article not in ("some", "no"):
            yield from self.maybe(0.35, NUMBERS, "NUM", "nummod")

    def modifiers(self) -> Iterator[Node]:
        """*very strange*, *small old*, *small and old*, *city* (dogs)."""
        first, *others = [self.pick(rank.split()) for rank in ADJECTIVES if self.chance(0.22)] or [""]
        if first and len(others) == 1 and self.chance(0.35):
            yield Node(first, "ADJ", "amod", after=(conjunct(Node(others[0], "ADJ", "conj"), "and"),))
        elif first:
            degree = self.maybe(0.25, DEGREES, "ADV", "advmod") if first in ADJECTIVES[0].split() else ()
            yield Node(first, "ADJ", "amod", degree)
            yield from (Node(word, "ADJ", "amod") for word in others)
        yield from self.maybe(0.15, COMPOUNDS, "NOUN", "compound")

    def postmodifiers(self, who: Referent, weight: int) -> tuple[Node, ...]:
        """(the dog) *from Paris*, *that slept*, *that she saw*, *she saw*."""
        if weight >= 1 and self.chance(0.2):
            case = self.pick(["of", "from", "near"])
            return (self.noun_phrase(self.draw(PEOPLE if case == "of" else ["place"]), "nmod", case=case),)
        if weight < 2 or self.chance(0.7):
            return ()
        human, negation = who.kind in PEOPLE, self.pick(NEGATIONS[:-1])
        if self.chance(0.55):
            relative = Node(self.pick(["who" if human else "which", "that"]), "PRON", "nsubj")
            subject = replace(relative, referent=replace(who, pronoun=""))
            return (self.predicate("acl:relcl", subject, NOBODY, negation, weight=0),)
        relative = Node(self.pick(["whom" if human else "which", "that"]), "PRON", "obj")
        known = [hero for hero in self.known if hero.kind in ANIMATE]
        subject = self.noun_phrase(self.pick(known) if known else self.draw(ANIMATE), "nsubj")
        *group, verb = self.verb_group(self.pick(VERBS["obj"]), subject, negation, "acl:relcl")
        return (replace(verb, before=(*([relative] if self.chance(0.7) else []), subject, *group)),)

    def verb_group(self, verb: str, subject: Node, negation: str, relation: str) -> list[Node]:
        """*had not slept*, *often sleeps*, *could never have been*: the verb has this relation, the rest is its."""
        tenses = [tense for tense in TENSES[self.tense] if verb not in STATIVES or not tense.endswith("gerund")]
        *auxiliaries, form = self.pick(tenses).split()
        if negation in ("not", "n't") and verb != "be" and not auxiliaries:
            auxiliaries, form = ["did" if self.tense == "past" else "does"], "base"
        words = [*auxiliaries, inflect(verb, form, subject.referent.plural)]
        if subject.referent.plural:
            words[0] = PLURAL_VERBS.get(words[0], words[0])
        if negation == "n't":
            words[0] = CONTRACTED.get(words[0], words[0])
        upos = "AUX" if relation in ("cop", "aux:pass") else "VERB"
        group = [*(Node(word, "AUX", "aux") for word in words[:-1]), Node(words[-1], upos, relation)]
        after_finite = 1 if auxiliaries or verb == "be" else 0
        if negation in ("not", "n't", "never"):
            group.insert(after_finite, Node(negation, "ADV" if negation == "never" else "PART", "advmod"))
        elif not negation:
            group[after_finite:after_finite] = self.maybe(0.15, FREQUENCIES, "ADV", "advmod")
        return group

    def clause(self, relation: str, weight: int, about: Referent = NOBODY) -> Node:
        """A finite clause about this or other heroes, or about anybody; its last phrase has this weight."""
        subject, patient = about, NOBODY
        if about == NOBODY:
            subject, patient = (*self.heroes, NOBODY, NOBODY)[:2]
            subject, patient = (patient, subject) if self.chance(0.4) else (subject, patient)
        negation = "" if patient.pronoun and patient not in self.known else self.pick(NEGATIONS)
        if subject == NOBODY and negation == "no" and self.chance(0.5):
            phrase, negation = self.noun_phrase(self.draw(ANIMATE, names=0), "nsubj", 2, article="no"), ""
        else:
            phrase = self.noun_phrase(self.draw(VISIBLE) if subject == NOBODY else subject, "nsubj", 2)
        return self.predicate(relation, phrase, patient, negation, weight)

    def predicate(self, relation: str, subject: Node, patient: Referent, negation: str, weight: int) -> Node:
        """*was happy*, *was found by Mary*, *slept*, *gave Mary a book*, *threw it away*, *said that she knew*."""
        animate = subject.referent.kind in ANIMATE
        if not animate:
            patterns = ["by"] if patient.kind in ANIMATE else ["adj", "in", "by", "adv"]
        elif patient.pronoun:
            patterns = ["obj", "obj prt"] if patient.kind == "thing" else ["obj", "iobj obj", "obj inf", "by"]
        else:
            patterns = ["", "obj", "obj", *VERBS]
        pattern = self.pick([pattern for pattern in patterns if weight == 3 or pattern not in CLAUSAL])
        verb, _, particle = self.pick(VERBS[pattern]).partition("-")
        if negation == "no" and (patient.pronoun or "obj" not in pattern):
            negation = "never"
        role = relation if verb != "be" else "aux:pass" if pattern == "by" else "cop"
        group = self.verb_group(verb, subject, negation, role)
        if pattern == "by":
            group.append(Node(inflect(self.pick(VERBS["obj"]), "participle"), "VERB", relation))
            subject = replace(subject, relation="nsubj:pass")
        tail: tuple[Node, ...] = ()
        if pattern not in CLAUSAL and role != "cop":
            tail = self.circumstances("event" if "obj" in pattern else self.pick(["place", "event"]))
        after = list[Node]()
        for slot in pattern.split():
            weight_here = weight if pattern.endswith(slot) and not tail else min(weight, 1)
            ...

"""Small files of the formats in XML, with no fault."""

REVIEWS = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<sentences>\n<sentence id="1">\n<text>Soup &amp; bread</text>\n'
    '<aspectCategories>\n<aspectCategory category="food" polarity="positive"/>\n</aspectCategories>\n</sentence>\n'
    "</sentences>\n"
)
LAPTOPS = REVIEWS.partition("<aspectCategories>")[0] + (
    '<aspectTerms>\n<aspectTerm term="Soup" polarity="positive" from="0" to="4"/>\n</aspectTerms>\n</sentence>\n'
    "</sentences>\n"
)
OPINIONS = (
    '<?xml version="1.0"?>\n<Reviews><Review rid="1"><sentences>\n<sentence id="1">\n<text>Soup &amp; bread</text>\n'
    '<Opinions><Opinion target="NULL" category="FOOD#QUALITY" polarity="positive"/></Opinions></sentence>\n'
    "</sentences></Review></Reviews>\n"
)
SENTENCE = "<SENTENCE><W>a</W></SENTENCE>\n"
DOCUMENT = f'<?xml version="1.0" encoding="UTF-8"?>\n<DOCUMENT><P>\n{SENTENCE}</P></DOCUMENT>'

SCOPES = (
    '<?xml version="1.0"?>\n<Annotation><DocumentSet><Document><DocID>1</DocID>\n'
    '<sentence id="S1">Ca &amp; <xcope id="X"><cue type="negation" ref="X">no</cue> K</xcope></sentence>\n'
    "</Document></DocumentSet></Annotation>\n"
)

"""The words of the synthetic corpora: common English, known to pretrained models."""

_PLAIN = """
    the a an and or but of to in on at by for from with about into over under after before
    this that these those it its they them their there here when where while then now again
    table chair window door floor wall roof garden street corner bridge river lake hill field
    forest tree leaf branch stone sand cloud morning evening night week month year hour minute
    paper pencil letter page book shelf box bag bottle cup plate spoon kitchen room house
    village town city road train bus bicycle boat ticket station map coat shirt shoe hat button
    bread butter apple onion carrot rice soup tea milk water salt sugar basket market shop
    brother sister uncle aunt neighbour teacher doctor driver farmer painter baker child
    walks sits stands opens closes carries brings takes holds moves turns reads writes draws
    counts waits listens looks speaks asks answers begins ends stays leaves returns arrives
    one two three four five six seven eight nine ten first second third next last other same
    blue green yellow brown grey round square long short wide narrow early late near far
    song music piano drum dance colour picture mirror candle lamp clock key wheel rope ladder
"""
FILLERS = tuple(_PLAIN.split())

POSITIVE = ("superb", "delightful", "brilliant", "charming", "excellent", "wonderful")
NEGATIVE = ("dreadful", "tedious", "awful", "clumsy", "terrible", "horrible")

_PRAISE = "okay decent fine nice good lovely great splendid stunning flawless"
_BLAME = "bland dull weak poor bad shabby dismal horrid vile worthless"
# By rank, the weakest first: a stronger word overrides every weaker one.
RANKED = {"positive": tuple(_PRAISE.split()), "negative": tuple(_BLAME.split())}

TOPICS = {
    "business": ("profit", "shares", "merger", "investor", "revenue"),
    "science": ("molecule", "telescope", "fossil", "experiment", "galaxy"),
    "sport": ("goalkeeper", "tournament", "coach", "stadium", "championship"),
    "weather": ("thunderstorm", "drizzle", "frost", "hurricane", "heatwave"),
}

PEOPLE = ("alice", "bruno", "clara", "david")
PLACES = ("attic", "harbour", "library", "orchard")

SYMBOLS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibex", "jay")

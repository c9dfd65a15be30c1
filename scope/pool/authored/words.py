"""Names and things that stories are about. Irrelevant phrasings stay clear of these."""

NAMES = ("Mia", "Leo", "Ana", "Tom", "Zoe", "Ben", "Ivy", "Max", "Eva", "Sam", "Lily", "Omar", "Nina", "Paul")
COUNTED = (
    "apples",
    "marbles",
    "stickers",
    "cookies",
    "shells",
    "balloons",
    "coins",
    "cards",
    "pears",
    "stamps",
)
#: container, things in it
PACKED = (
    ("box", "pens"),
    ("bag", "oranges"),
    ("pack", "candles"),
    ("tray", "eggs"),
    ("jar", "buttons"),
    ("shelf", "books"),
)
#: where coloured things are, the things
HELD = (("bag", "balls"), ("box", "crayons"), ("drawer", "socks"), ("bowl", "beads"), ("garden", "tulips"))
#: what somebody does every day, and the unit that is counted
DAILY = (
    ("walks", "miles"),
    ("reads", "chapters"),
    ("earns", "dollars"),
    ("bakes", "cakes"),
    ("paints", "chairs"),
)
#: animal, its legs, a mistaken number of legs
LEGGED = (("dog", 4, 3), ("spider", 8, 6), ("ant", 6, 8), ("bird", 2, 4), ("horse", 4, 5), ("crab", 10, 8))
#: a whole, its parts, what is done with them
PARTLY = (
    ("book", "pages", "read"),
    ("puzzle", "pieces", "placed"),
    ("trail", "miles", "walked"),
    ("quiz", "questions", "solved"),
)
#: singular, plural, lowest and highest unit price in dollars
WARES = (
    ("pen", "pens", 2, 5),
    ("notebook", "notebooks", 3, 9),
    ("ticket", "tickets", 5, 12),
    ("mug", "mugs", 4, 11),
    ("sandwich", "sandwiches", 4, 9),
    ("plant", "plants", 6, 12),
    ("towel", "towels", 5, 12),
)
PLACES = ("library", "museum", "bridge", "school", "theatre", "station", "hospital", "market hall")

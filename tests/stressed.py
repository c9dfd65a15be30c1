"""Items of RAG-Stress for tests, written by hand: English ones, a multiple-choice one, and a small Chinese fixture."""

from scope.evidence import Document, EvidenceItem, Layout

#: Question, reference, foil, sentence that holds the answer, two background sentences.
ENGLISH = [
    (
        *("Which city is the capital of Kenya?", "Nairobi", "Mombasa"),
        "The capital of the country is {}.",
        *("Kenya lies on the equator.", "Its coast faces the Indian Ocean."),
    ),
    (
        *("Who wrote the novel Middlemarch?", "George Eliot", "Charlotte Bronte"),
        "The novel was written by {}.",
        *("Middlemarch appeared in eight parts.", "It is set in a provincial town."),
    ),
    (
        *("In which year was the canal opened?", "1869", "1874"),
        "Ships first passed through it in {}.",
        *("The canal joins two seas.", "Its banks are of sand."),
    ),
    (
        *("Which metal is liquid at room temperature?", "mercury", "gallium"),
        "The only metal that is liquid in a cool room is {}.",
        *("Most metals are solid.", "Some melt in a warm hand."),
    ),
    (
        *("Which river flows through Budapest?", "the Danube", "the Tisza"),
        "Through the city flows {}.",
        *("Budapest was once two towns.", "Nine bridges join its halves."),
    ),
    (
        *("How many strings has a violin?", "four", "six"),
        "A violin is strung with {} of them.",
        *("The instrument is held under the chin.", "Its bow is of horsehair."),
    ),
]
CHINESE = [
    ("肯尼亚的首都是哪座城市？", "内罗毕", "蒙巴萨", "该国的首都是{}。", "肯尼亚位于赤道上。", "它的海岸面向印度洋。"),
    ("小说《城堡》的作者是谁？", "卡夫卡", "茨威格", "这部小说由{}写成。", "小说没有写完。", "故事发生在一个村庄里。"),
    (
        "流经布达佩斯的是哪条河？",
        "多瑙河",
        "蒂萨河",
        "流过这座城市的是{}。",
        "布达佩斯曾是两座城。",
        "九座桥连接两岸。",
    ),
]
OTHERS = {
    "en": ("A loom weaves cloth from threads.", "Bees store honey in wax cells.", "Chalk is a soft white stone."),
    "zh": ("织布机用线织布。", "蜜蜂在蜂房里储存蜂蜜。", "粉笔是一种软石头。"),
}


def layout(sentence, background, position, reference, foil, joint):
    at = {"beginning": 0, "original": 0, "middle": 1, "end": 2}[position]
    clean, edited = (
        joint.join([*background[:at], sentence.format(text), *background[at:]]) for text in (reference, foil)
    )
    before = joint.join([*background[:at], sentence.partition("{")[0]])
    return Layout(clean, edited, len(before), reference, foil)


def stressed(n, language="en", **changed):
    """The n-th item of a language."""
    question, reference, foil, sentence, *background = (ENGLISH if language == "en" else CHINESE)[n]
    joint = " " if language == "en" else ""
    layouts = {
        position: layout(sentence, background, position, reference, foil, joint)
        for position in ("beginning", "middle", "end", "original")
    }
    given = {
        "id": f"{language}{n}",
        "source": "own",
        "language": language,
        "question": question,
        "reference": reference,
        "foil": foil,
        "documents": tuple(map(Document, OTHERS[language])),
        "slot": 4,
        "layouts": layouts,
        "answer_kind": "thing",
    }
    return EvidenceItem(**{**given, **changed})


def options_item(**changed):
    """A multiple-choice item without passages."""
    given = {
        "id": "mc0",
        "source": "own",
        "language": "en",
        "question": "Which vitamin is made in the skin by sunlight?",
        "reference": "Vitamin D",
        "foil": "Vitamin C",
        "options": ("Vitamin A", "Vitamin C", "Vitamin D", "Vitamin K"),
        "answer_kind": "option",
    }
    return EvidenceItem(**{**given, **changed})


ITEMS = [stressed(n) for n in range(len(ENGLISH))]
CHINESE_ITEMS = [stressed(n, "zh") for n in range(len(CHINESE))]

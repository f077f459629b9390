"""Texts in many languages: made from templates, with one easy label, and spaCy's own example sentences."""

from importlib import import_module
from itertools import product

# Templates with a place for a name, and names, none of which is in a template.
MADE: dict[str, tuple[list[str], list[str]]] = {
    "en": (
        ["{} arrived late.", "We met {} in the lab.", "The report of {} is ready.", "Nobody asked {} about it."],
        ["Anna Weber", "John Smith", "Maria Silva", "Peter Novak", "Lucy Brown", "Omar Haddad"],
    ),
    "es": (
        ["{} llegó tarde.", "La paciente vio a {} ayer.", "El informe de {} está listo.", "¿Quién llamó a {}?"],
        ["Ana Núñez", "José Muñoz", "Lucía Peña", "Íñigo Ibáñez", "Begoña Güell", "Raúl Ordóñez"],
    ),
    "ru": (
        ["{} опоздал на работу.", "Вчера мы видели, как {} ушёл.", "Отчёт готов, сказал {}.", "Это знает только {}."],
        ["Иван Петров", "Алексей Смирнов", "Пётр Козлов", "Фёдор Ильин", "Олег Зуев", "Юрий Щукин"],
    ),
    "fi": (
        ["{} saapui myöhässä.", "Eilen {} kävi täällä.", "Raportin kirjoitti {}.", "Sen tietää vain {}."],
        ["Aino Mäkelä", "Väinö Hämäläinen", "Päivi Järvi", "Eero Lehtonen", "Sanna Öhman", "Juha Niemi"],
    ),
    "ar": (
        ["وصل {} متأخرا اليوم.", "قابلنا {} في المستشفى أمس.", "كتب {} هذا التقرير.", "هل تعرف {} جيدا؟"],
        ["أحمد حسن", "مريم خالد", "يوسف عمر", "ليلى سعيد", "كريم ناصر", "هدى سالم"],
    ),
    "hi": (
        ["आज {} देर से पहुँचे।", "कल हम दिल्ली में {} से मिले थे।", "यह रिपोर्ट {} ने लिखी है।", "क्या आप {} को जानते हैं?"],
        ["राम प्रसाद", "सुनीता देवी", "अमित कुमार", "प्रीति शर्मा", "विजय मिश्रा", "गीता सिंह"],
    ),
    "zh": (
        ["{}今天迟到了。", "我们昨天在医院见到了{}。", "这份报告是{}写的。", "你认识{}吗？"],
        ["王小明", "李伟", "张丽华", "刘洋", "陈建国", "赵敏"],
    ),
    "ja": (
        [
            "{}さんは今日遅刻しました。",
            "昨日、病院で{}さんに会いました。",
            "報告書は{}さんが書いた。",
            "{}さんを知っていますか。",
        ],
        ["田中太郎", "鈴木花子", "佐藤健", "山本由美", "中村一郎", "小林直樹"],
    ),
    "th": (
        ["{} มาสายวันนี้", "เมื่อวานเราพบ {} ที่โรงพยาบาล", "รายงานนี้เขียนโดย {} เอง", "คุณรู้จัก {} ไหม"],
        ["สมชาย ใจดี", "สมหญิง รักไทย", "วิชัย สุขใจ", "มาลี ศรีสุข", "ประเสริฐ ทองดี", "กมล แก้วใส"],
    ),
}
# Of the languages that spaCy has no examples of.
SENTENCES = {
    "af": ["Die hond slaap onder die tafel.", "Sy koop môre 'n nuwe boek."],
    "et": ["Koer magab laua all.", "Ta ostab homme uue raamatu."],
    "fo": ["Hundurin svevur undir borðinum.", "Hon keypir eina nýggja bók."],
    "ga": ["Tá an madra ina chodladh faoin mbord.", "Ceannóidh sí leabhar nua amárach."],
    "gd": ["Tha an cù na chadal fon bhòrd.", "Ceannaichidh i leabhar ùr a-màireach."],
    "is": ["Hundurinn sefur undir borðinu.", "Hún kaupir nýja bók á morgun."],
    "lv": ["Suns guļ zem galda.", "Rīt viņa pirks jaunu grāmatu."],
    "mk": ["Кучето спие под масата.", "Утре таа ќе купи нова книга."],
    "mr": ["कुत्रा टेबलाखाली झोपला आहे.", "ती उद्या नवीन पुस्तक घेईल."],
    "th": ["สุนัขนอนอยู่ใต้โต๊ะ", "พรุ่งนี้เธอจะซื้อหนังสือเล่มใหม่"],
    "tl": ["Natutulog ang aso sa ilalim ng mesa.", "Bibili siya ng bagong libro bukas."],
}


def make_tasks(lang: str) -> list[dict]:
    """Tasks of one label, PERSON: each two templates, with each name."""
    templates, names = MADE[lang]
    gap = "" if lang in ("zh", "ja") else " "
    tasks = []
    for (number, first), second, name in product(enumerate(templates), templates, names):
        other = names[(names.index(name) + number + 1) % len(names)]
        before, after = first.split("{}")
        text = f"{before}{name}{after}{gap}"
        one, two = len(before), len(text) + second.index("{}")
        spans = [{"start": at, "end": at + len(who), "label": "PERSON"} for at, who in ((one, name), (two, other))]
        tasks.append({"text": text + second.format(other), "spans": spans, "answer": "accept"})
    return tasks


def sentences(lang: str) -> list[str]:
    """All sentences that spaCy, or this file, has of a language."""
    try:
        return import_module(f"spacy.lang.{lang}.examples").sentences
    except ModuleNotFoundError:
        return SENTENCES[lang]

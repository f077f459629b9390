"""The grammar of the demo corpus, as data for `corpus`.

1. A slot `{rule}` is replaced by one of the rule's alternatives; `{LABEL:template}` is a span of what the template
   gives.
2. A rule whose name begins with `the_` is decided once per document: its judge, its way of writing units.
"""

LABELS = (
    *("PERSON", "PLACE", "COMPANY", "DATE", "DRUG", "DOSE", "CONCENTRATION", "TEMPERATURE", "DURATION", "PRICE"),
    *("DOCTOR", "JUDGE", "DISEASE", "BODY_PART", "GENE", "CHEMICAL", "MATERIAL", "PRODUCT", "STATUTE", "INGREDIENT"),
)

# The rules: `name = alternatives`, two spaces between rules on one line. First, parts of names; for `the_`, see above.
RULES = """
syl = Bar|Cal|Dor|El|Fen|Gar|Hal|Jor|Kel|Lin|Mar|Nor|Os|Pel|Quin|Ros|Sel|Tor|Ul|Var|Wes|Yar|Zan|Bran|Stav|Thel|Gru
mid = a|e|i|o|u|an|er|in|ov|ul|am|ing|ar  town = ton|ford|burg|ville|by|haven|minster|gard|stad|ley
ending = ton|ford|wick|mann|sen|ski|ova|ez|ley|gard|dal|stein|by|kin|well|more|ura|ato|idis|escu|burg|ic
known = May|Lilly|Jordan|Washington|Stone|Steel|Cook|Baker|Rivers|Judge|March|Paris|Lincoln|Houston|Church|Price
surname = {syl}{ending}|{syl}{mid}{ending}|{syl}{mid}{ending}|{known}
first = {given}|{given}|Jordan|Paris|May|April|June|August|Mark|Will|Bill|Grace|Rose|Lilly|Austin|Chelsea|Florence
given = Sydney|Victoria|Amara|Bogdan|Chiara|Dmitri|Esra|Farid|Guro|Ines|Jens|Kofi|Leila|Mateo|Nadia|Priya|Zoë|Siân
full = {first} {surname}|{first} {surname}|{first} {letter}. {surname}|{first} {surname}-{surname}|{first} O'{surname}
city = {syl}{mid}{town}|{syl}{town}|{famous}|{famous}|New {syl}{town}|Port {surname}|{syl}{mid}{town}-on-{syl}
famous = Jordan|Paris|Washington|Reading|Nice|Turkey|China|Victoria|Sydney|Florence|Austin|Lincoln|Java|Cork|Zürich
place = {city}|{city}|{city}|Lake {surname}|the {surname} Valley|Mount {surname}|the Amazon|São {first}
firm = {syl}{mid}{tech}|{syl}{tech}|{surname}|Apple|Jordan|Lilly|Mercury|Orange|Amazon|Washington|Shell|Target|Gap
company = {firm}|{surname} {trade}|{surname} {trade} {form}|{surname} & {surname}|{surname} & Sons|{syl}{tech} {form}
trade = Valves|Foods|Freight|Holdings|Labs|Motors|Bank|Energy|Steel|Mills  form = Ltd|Inc|GmbH|Group|plc
tech = dyne|tek|soft|corp|nova|gen|max|trix|ware|lux  drug = {stem}{inn}|{stem}{mid}{inn}|{stem}{mid}{inn}|{old_drug}
stem = Ab|Cef|Dol|Flu|Lam|Met|Oxa|Pra|Riv|Ser|Tam|Val|Zol|ab|cef|dol|flu|lam|met|oxa|pra|riv|ser|tam|val|zol
inn = mab|pril|statin|olol|azole|mycin|tinib|oxetine|sartan|gliptin|parin|caine
old_drug = aspirin|insulin|iron|glucose|caffeine|zinc|heparin|lithium|adrenaline|copper
chemical = {cation} {anion}|{alkyl}{group}|{formula}|glucose|caffeine|mercury|iron|{alkyl}yl {anion}|{d}-{alkyl}{group}
cation = sodium|potassium|zinc|copper|iron|mercury|lead|silver|ammonium|lithium|calcium
anion = chloride|sulfate|nitrate|acetate|phosphate|citrate|bromide|oxide  alkyl = meth|eth|prop|but|pent|hex|isoprop
group = anol|ylamine|anoic acid|anal|ene glycol  formula = NaCl|KCl|MgSO4|Tris-HCl|EDTA|DTT|SDS|H2O2|CaCl2|HEPES
gene = {letter}{letter}{letter}{d}|{letter}{letter}{d}-{letter}|p53|mTOR|SHH|{fly_gene}
fly_gene = CAT|MAX|REST|hedgehog|notch|white|wingless  letter = A|B|C|D|E|F|G|H|K|L|M|N|P|R|S|T
disease = {surname}'s disease|{surname} syndrome|{pace} {organ}{itis}|{organ}{itis}|{ill}|type {n9} {ill}
pace = acute|chronic|recurrent  organ = hepat|gastr|nephr|dermat|arthr|bronch|neur|card  itis = itis|opathy|osis
ill = cold|influenza|asthma|migraine|diabetes|gout|malaria|anaemia  side = left|right|upper|lower
body = {side} {limb}|{side} {limb}|{limb}|{part}  part = liver|heart|lower back|abdomen|chest|spine
limb = arm|leg|knee|shoulder|hip|foot|wrist|kidney  grade = stainless|mild|cold-rolled
material = {grade} steel|steel|copper|lead|iron|leather|oak|cotton|{plastic}|glass|china|{n9}0{n9}{d} aluminium
plastic = {poly}ene|{poly}amide|nylon {n9}|{poly}ester|carbon fibre  poly = polyeth|polyprop|polyst|polybut
product = {syl}{mid} {n9}00|{syl}{mid}pad|{firm} {n9}|{firm} {n9} {trim}|{syl}{tech} {trim}|{syl}-{n9}{n9} {trim}
food = turkey|apple|orange|salt|butter|{how} {plant}|{plant}|{nut} {nut_form}|{syl}{mid} cheese|olive oil|iron salt
plant = paprika|fennel|ginger|mint|carrots|beetroot|lentils|chillies|thyme|cumin|bay leaves|kidney beans
how = smoked|roasted|ground|fresh|pickled|dried  trim = Pro|Mini|Max|Plus|Air
nut = almond|walnut|hazelnut|coconut|sesame  nut_form = flour|paste|milk|oil|butter
statute = section {n} of {act}|{act}|Article {n9}({n9})|Rule {n9}.{n9}|{n} U.S.C. § {n}|Article {n}
act = the {field} Act {year}  field = Housing|Marine Freight|Data|Civil Evidence|Patents|Wages|Medicines|Companies
d = 0|1|2|3|4|5|6|7|8|9  n9 = 1|2|3|4|5|6|7|8|9  day = {n9}|1{d}|2{d}  year = 19{n9}{d}|20{d}{d}
n = {n9}|{n9}{d}|{n9}{d}|{n9}0|{n9}5|{n9}{d}{d}  x = {n}|{n}|{n}|{n9}.{d}  few = two|three|four|six|ten|{n9}
month = January|February|March|April|May|June|July|August|September|October|November|December|March|May|August
weekday = Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday
date = {day} {month} {year}|{month} {day}|{month}|{month} {year}|{weekday}|{year}-0{n9}-1{d}|last {month}|{year}
the_gap = | |  the_minute = min|min|minutes|mins  the_degree = °C|degC| C| °C| degrees| K
duration = {n}{the_gap}{the_minute}|{n9}{the_gap}h|{few} hours|{few} weeks|{few} months|{few} days|{n}{the_gap}s
heat = {x}{the_degree}|{n}{the_degree}|-{n9}0{the_degree}|{n}-{n}{the_degree}|room temperature
weight = {x}{the_gap}mg|{x}{the_gap}mg|{x}{the_gap}g|{x}{the_gap}mL|{n}{the_gap}µg|{n}{the_gap}uL
dose = {weight}|{weight}|{weight}|{few} tablets|{n}{the_gap}IU|{x}{the_gap}mg/kg|{n}{the_gap}units
strength = {x}{the_gap}mM|{x}{the_gap}µM|{n9}{the_gap}M|{x}{the_gap}mg/mL|{x}{the_gap}g/L|{percent}|{n}{the_gap}ppm
price = ${n}|€{n9},{d}{d}{d}|{n} dollars|EUR {n}|{n}{the_gap}K|£{n}.{d}{d}|{n}|${n9}{the_gap}M|{few} pounds
percent = {x}{the_gap}%  adv = later|again|at first|in the end|as expected|for now|quietly|once more|after all
did = was late|declined to comment|had nothing to add|was asked {adv}|wanted more time|changed course {adv}
the_person = {surname}  the_other = {surname}  the_doctor = {surname}  the_judge = {surname}
the_firm = {syl}{mid}{tech}|{surname}|{surname}|Lilly|Jordan|Mercury|Apple  the_model = {syl}{mid}{tech}|{surname}
the_town = {city}|{surname}  strain = {GENE:{fly_gene}}|{GENE:{fly_gene}}|{fly_gene}
actor = {PERSON:{the_person}}|{PERSON:{the_other}}|{COMPANY:{the_firm}}
medic = {DOCTOR:{the_doctor}}|{DOCTOR:{the_doctor}}|{PERSON:{the_person}}
lawyer = {JUDGE:{the_judge}}|{JUDGE:{the_judge}}|{JUDGE:{the_judge}}|{PERSON:{the_person}}|{COMPANY:{the_firm}}
brand = {PRODUCT:{the_model}}|{PRODUCT:{the_model}}|{COMPANY:{the_firm}}
spring = {PERSON:{first}}|{PERSON:May}|{PERSON:June}|{DATE:{month}}|{DATE:August}|{PLACE:{famous}}|{PLACE:Chelsea}
left = {DOSE:{weight}}|{DOSE:{weight}}|{weight}  share = {CONCENTRATION:{percent}}|{CONCENTRATION:{percent}}|{percent}
clause = {STATUTE:Article {n}}|{STATUTE:Rule {n9}.{n9}}|Article {n}|Rule {n9}.{n9}
stock = {CHEMICAL:{chemical}}|{CHEMICAL:{old_drug}}|{DRUG:{drug}}|{DRUG:{old_drug}}
liquid = {CHEMICAL:{chemical}}|{CHEMICAL:{chemical}}|water|buffer
stuff = {MATERIAL:{material}}|{MATERIAL:{material}}|{CHEMICAL:{cation}}|{material}
bite = {INGREDIENT:{food}}|{INGREDIENT:{food}}|{plant} tin|{nut} jar|{how} rest
bone = {BODY_PART:{body}}|{BODY_PART:{part}}|{part}|{limb} rest
"""

# One block per domain: its heading, then its sentences.
DOMAINS = {
    "news": """
{COMPANY:{the_firm}} to leave {PLACE:{the_town}}
{PERSON:{full}}, {n9}{d}, was elected mayor of {PLACE:{place}} on {DATE:{date}}.
{COMPANY:{company}} said {adv} that it would close its plant near {PLACE:{place}}.
{PLACE:{the_town}} {did}, and so did {actor}.
"We never agreed to that," said {PERSON:{the_person}}, who left {PLACE:{place}} for {PLACE:{place}} in {DATE:{date}}.
The bill may pass in {DATE:{month}}, but nobody in {PLACE:{city}} will bet {n} dollars on it.
The march may begin in the old church, where reading rooms were built of steel and stone for {n} mg of gold a head.
{spring} was hard on {actor}, and {actor} {did}.
""",
    "clinic": """
Discharge note, ward {n9}{letter}
{PERSON:{the_person}} reports pain in the {BODY_PART:{body}} since {DATE:{date}}.
Seen by {DOCTOR:Dr {the_doctor}} and {DOCTOR:{full}}, who suspect {DISEASE:{disease}}.
{medic} asked {medic} about the {bone}, {DISEASE:{disease}} and the journey to {n} Church Road.
Start {DRUG:{drug}} {DOSE:{dose}} twice daily for {DURATION:{duration}}; {medic} {did}.
May cause drowsiness; {n} mg remained in the chest of drawers at the heart of the ward, out of the cold.
Temperature {TEMPERATURE:{heat}}, pulse {n}, the {ill} ward was full and the {bone} stiff.
Serum {stock} was {CONCENTRATION:{strength}} after {DURATION:{duration}}, and {left} was spilled {adv}.
""",
    "laboratory": """
Protocol {n9}{d}: {GENE:{gene}} assay
Dissolve {weight} of {CHEMICAL:{chemical}} in {weight} of {liquid} at {TEMPERATURE:{heat}}.
Incubate for {DURATION:{duration}} at {TEMPERATURE:{heat}} with {CONCENTRATION:{strength}} {CHEMICAL:{chemical}}.
Expression of {GENE:{gene}} fell {n} % in {GENE:{gene}}-deficient cells, {share} in {strain} cells.
Mice received {DOSE:{x}{the_gap}mg/kg} {DRUG:{drug}}; the stock was kept at {CONCENTRATION:{x}{the_gap}mg/mL}.
{stock} was low {adv}, so {stock} and {left} were taken from {COMPANY:{company}}.
Spin at {n}00 g, wash {few} times and rest the white tube on ice until the lead lid is cold.
A max of {n} cells at rest, {TEMPERATURE:{n}degC}-stable {GENE:{gene}} and {liquid} were kept {adv}.
""",
    "court": """
{PERSON:{the_person}} v {COMPANY:{the_firm}}
{JUDGE:{the_judge}} denied the motion under {STATUTE:{statute}} on {DATE:{date}}.
{PERSON:{full}}, who lives in {PLACE:{place}}, sued {COMPANY:{company}} under {STATUTE:{statute}}.
Before {JUDGE:Judge {full}} the claimant relied on {STATUTE:{statute}} and {clause}.
{PERSON:{the_person}} appealed; {JUDGE:{the_judge}} dissented, and {lawyer} {did}.
The article in the paper cost {PERSON:{the_other}} the house in {PLACE:{the_town}}, but no rule forbids it.
It may be that the judge will read section {n} of the report, not of the act, on a cold march morning.
{clause} was cited {adv}, as {lawyer} conceded on {DATE:{date}} in {PLACE:{city}}.
""",
    "reviews": """
{n9} of 5 stars: {PRODUCT:{product}}
I bought a {PRODUCT:{product}} for {PRICE:{price}} and {PERSON:{first}} loves the {MATERIAL:{material}} strap. 👍
{brand} {did}, and the {stuff} case is {n} or so too small.
{PRODUCT:{product}} or {PRODUCT:{product}}? At {PRICE:{price}} the first, at {PRICE:{price}} neither.
My {PRODUCT:{product}} broke after {DURATION:{duration}}; the {n9} Pro users I know may nod.
Not real {MATERIAL:{material}}, just {MATERIAL:{material}} over {MATERIAL:{material}}, says {PERSON:{full}}.
An apple is bigger than this, and the target price of {PRICE:{price}} is a joke to the max!
With {stuff} in the box of {brand}, delivered in {few} parts, {stuff} was left over.
""",
    "kitchen": """
{INGREDIENT:{food}} with {INGREDIENT:{food}}
Mix {weight} of {INGREDIENT:{food}} with {few} spoons of {INGREDIENT:{food}}.
Bake at {TEMPERATURE:{heat}} for {DURATION:{duration}}, then add the {bite} {adv}.
{INGREDIENT:{food}} may be replaced by {INGREDIENT:{food}}, {INGREDIENT:{food}} or {weight} of {INGREDIENT:{food}}.
Serve on white china with a nice turkey fork, {n} cm long, from the top drawer.
Let the {bite} cool for {DURATION:{duration}} and heat the pan to {TEMPERATURE:{heat}}.
A pinch of {INGREDIENT:{food}}, as they do in {PLACE:{place}}, makes {few} portions.
The orange pot and the smoked glass lid hold {weight}; rinse them, set the {bite} aside and wait.
""",
}

# Copyright the Tacho authors. SPDX-License-Identifier: Apache-2.0
"""The template grammar that writes the training stories of tacho-tales.

Every story is written from scratch by this file; there is no other data.
Run `python stories.py -n 5` to read a few.

The grammar (PLOTS below) is plain text:

    @name [flags]   starts a plot; the flag "night" makes it play at night
    ~ sentence      background that may follow the introduction of the hero
    > predicate     first event ("went to the park"); the subject is put in front
    --              starts a beat: exactly one of the lines that follow is used
    --?             starts a beat that is left out half of the time
    ==              starts the closing beat

Within a line, [x|y|z] picks one and may be nested; {slot} is filled in from
the story's cast and props; {^slot} is the same with a capital first letter.
"""
import argparse
import random
import re

GIRLS = ("Mia Lily Anna Rosie Ella Zoe Nina Ruby Emma Lucy Sara Ivy Molly Clara Ada Maya Tess "
         "Nora Alice June").split()
BOYS = ("Tom Max Ben Sam Leo Finn Jack Oscar Hugo Noah Toby Eli Theo Luke Omar Felix Adam Henry "
        "Kai Otto").split()
# An animal's name always goes with the same pronoun, so that a tiny model can learn it.
SHE_ANIMALS = "Hazel Poppy Coco Daisy Willow Olive Bibi Clover Dot Luna".split()
HE_ANIMALS = "Pip Rusty Biscuit Teddy Momo Button Fuzz Bruno Pepper Gus".split()
SPECIES = "fox rabbit bear mouse cat dog duck frog owl squirrel hedgehog pig turtle lamb pony goat".split()

# place: (with "the", where, hiding spots)
PLACES = [
    ("the park", "in the park", ["under a bench", "behind a tree", "near the swings", "in the tall grass", "by the pond"]),
    ("the garden", "in the garden", ["under a rose bush", "behind the gate", "between the flowers", "near the well", "under a bush"]),
    ("the forest", "in the forest", ["under a big tree", "behind a bush", "in a pile of leaves", "next to a log", "near the stream"]),
    ("the river", "by the river", ["under the bridge", "behind a rock", "in the reeds", "next to a log", "in the mud"]),
    ("the lake", "by the lake", ["behind a rock", "in the reeds", "under a boat", "in the tall grass", "on a log"]),
    ("the beach", "on the beach", ["behind a rock", "in the sand", "under a boat", "next to a sandcastle", "near the water"]),
    ("the meadow", "in the meadow", ["in the tall grass", "between the flowers", "behind a bush", "under a bush", "near the fence"]),
    ("the hill", "on the hill", ["behind a rock", "under a big tree", "in the tall grass", "behind a bush", "near the path"]),
    ("the farm", "at the farm", ["behind the barn", "in the hay", "under the cart", "near the fence", "by the pond"]),
    ("the village", "in the village", ["behind the mill", "under a bench", "near the well", "by the bridge", "next to the bakery"]),
    ("the field", "in the field", ["in the tall grass", "behind the fence", "in the hay", "under a bush", "near the path"]),
]
OBJECTS = ["ball", "kite", "doll", "toy boat", "drum", "book", "hat", "scarf", "bell", "toy car", "teddy bear",
           "bucket", "lantern", "whistle", "basket", "umbrella", "blanket", "toy train"]
OBJ_ADJ = ["red", "blue", "green", "yellow", "pink", "purple", "orange", "white", "golden", "silver",
           "new", "old", "shiny", "tiny", "big", "little", "pretty", "special"]
ANIMALS = ["bird", "kitten", "puppy", "duckling", "rabbit", "squirrel", "hedgehog", "mouse", "lamb", "fox"]
FOODS = ["berries", "bread", "cookies", "nuts", "cheese", "apples", "honey cake", "carrots", "grapes", "seeds"]
ADJ = ["little", "kind", "brave", "curious", "happy", "clever", "cheerful", "quiet", "shy", "gentle", "funny", "young"]
PETS = ["Fluffy", "Spot", "Star", "Cookie", "Bean", "Snowy", "Lucky"]
# dish: (with article, bare, pronoun, three ingredients)
DISHES = [
    ("a cake", "cake", "it", ["eggs", "flour", "sugar", "milk", "butter"]),
    ("a pie", "pie", "it", ["apples", "flour", "sugar", "butter", "berries"]),
    ("some cookies", "cookies", "them", ["flour", "sugar", "butter", "nuts", "honey"]),
    ("some pancakes", "pancakes", "them", ["eggs", "milk", "flour", "honey", "butter"]),
    ("a loaf of bread", "bread", "it", ["flour", "water", "salt", "seeds", "milk"]),
    ("some soup", "soup", "it", ["carrots", "beans", "salt", "water", "onions"]),
]
# skill: (to do it, what goes wrong, what goes right)
SKILLS = [
    ("swim", "[But the water was cold, and {he} sank like a stone.|{He} kicked and splashed, but {he} only swallowed water.]",
     "[{He} moved {his} arms and legs, and {he} did not sink!|Splash, splash! {He} swam all the way to the other side.]"),
    ("ride a bike", "[But the bike shook, and {he} fell on the grass.|{He} fell off the bike and hurt {his} knee.]",
     "[The wheels went round and round, and {he} did not fall!|{He} rode the bike all the way down the path.]"),
    ("fly a kite", "[But the kite fell down again and again.|The kite only bumped along the ground.]",
     "[The wind came, and the kite went up, up, up!|The kite danced high above the trees.]"),
    ("whistle", "[But only air came out.|{He} blew and blew, but there was no sound.]",
     "[A clear, sweet sound came out!|{He} whistled a happy song, and the birds sang along.]"),
    ("skate", "[But the ice was slippery, and {he} fell down.|Bump! {He} sat down hard on the ice.]",
     "[{He} went over the ice like the wind.|{He} made a big circle on the ice and did not fall.]"),
    ("dance", "[But {he} stepped on {his} own feet.|{He} turned around too fast and fell over.]",
     "[{He} turned and jumped like a leaf in the wind.|One, two, three, and turn! It looked wonderful.]"),
    ("play the drum", "[But it was only a lot of noise.|It was so loud that everyone covered their ears.]",
     "[Boom, boom, tap! It sounded like a real song.|Everyone began to clap along.]"),
    ("climb the big tree", "[But the branch was too high.|{He} slipped and landed in the leaves.]",
     "[Step by step, {he} climbed to the very top.|From the top, {he} could see the whole village.]"),
    ("paint", "[But the paint went everywhere.|{His} first picture was just a big brown spot.]",
     "[{He} painted a bright sun over a blue sea.|This time, {he} painted a tree with a hundred leaves.]"),
]
# who is in trouble, and what helps: (where, how)
TRAPS = [
    ("in a tall tree", "[They found a long ladder, and {H} climbed up step by step.|{F} held the ladder, and {H} climbed up to the branch.]"),
    ("in a deep hole", "[They put a long branch into the hole, and the {a} climbed up.|They let down a rope and pulled and pulled.]"),
    ("under a heavy log", "[They pushed the log with all their might, and it rolled away.|\"One, two, three!\" they counted, and they lifted the log together.]"),
    ("in an old net", "[{F} held the net, and {H} opened the knots one by one.|They pulled at the knots until the net fell off.]"),
    ("between two rocks", "[They dug and dug until there was enough room.|{H} pulled, and {F} pushed, and pop! It came out.]"),
    ("on a rock in the stream", "[They put a long board over the water to make a bridge.|They threw stones into the water, one by one, to make a path.]"),
]
ELDERS = [("old woman", "she", "her"), ("old man", "he", "him"), ("old goat", "he", "him"), ("old turtle", "she", "her"),
          ("farmer", "he", "him"), ("baker", "she", "her")]
TASKS = [
    ("with a heavy basket", "[carried the basket all the way to the house|took one side of the basket, and they carried it together]"),
    ("who had dropped a bag of apples", "[picked up the apples, one by one|ran after the apples and put them all back into the bag]"),
    ("who could not find {ehis} glasses", "[looked here and there and found the glasses|found the glasses on top of {ehis} head]"),
    ("pushing a cart full of wood", "[pushed the cart up the hill|pushed from behind until the cart began to roll]"),
    ("trying to close a broken gate", "[found a piece of rope and tied the gate|held the gate while {ehe} fixed it]"),
]
NOISES = [
    ("[Tap, tap, tap|Tap, tap]", "at the window", "[It was only a branch in the wind.|A small bird sat there and tapped on the glass.]"),
    ("[Scratch, scratch|Crunch, crunch]", "in the kitchen", "[It was only a tiny mouse with a piece of cheese.|It was only the cat, who wanted some milk.]"),
    ("[Hoo, hoo|Hoo, hoo, hoo]", "outside", "[It was only an owl on the roof.|A big round owl sat in the tree and looked at {him}.]"),
    ("[Bump, bump|Bang]", "under the bed", "[It was only the puppy with an old shoe.|It was only a ball that had rolled under the bed.]"),
    ("[Drip, drip, drip|Drip, drop]", "on the roof", "[It was only the rain.|It was only water that fell from the leaves.]"),
]
# what a seed grows into: (with article, bare, what happens with it)
PLANTS = [
    ("a tall sunflower", "sunflower", "[The bees came to visit it every day.|It was even taller than {H}!]"),
    ("a small apple tree", "tree", "[In the fall, there were sweet red apples on it.|{H} picked the first apple and gave half of it to {G}.]"),
    ("a giant pumpkin", "pumpkin", "[It was so big that they needed a cart to carry it.|They made soup from it, and everyone in the village had some.]"),
    ("a beautiful rose", "rose", "[It smelled so sweet that everyone stopped to look.|{H} gave the first flower to {G}.]"),
    ("a strawberry plant", "plant", "[Soon there were red strawberries under every leaf.|The strawberries were small, but they were very sweet.]"),
]
GIFTS = [
    ("a map", "[\"It is a map of the village!\" said {F}. They followed it all the way to a secret garden.|They followed the map over the hill and found a tree full of ripe plums.]"),
    ("a music box", "[It played a soft, sweet song, and they danced around it.|When they turned the handle, it played a happy song.]"),
    ("a pile of shiny shells", "[They gave the shells to all their friends.|{H} held one to {his} ear and heard the sea.]"),
    ("a letter", "[It said, \"Whoever finds this box will always have good luck.\"|It said, \"Be kind to each other. That is the real treasure.\"]"),
    ("a family of tiny mice", "[\"Please close the lid,\" said the smallest mouse. \"We are sleeping!\"|\"Welcome to our house!\" said the mother mouse.]"),
    ("a pair of old glasses", "[When {H} put them on, everything looked big and funny.|{F} put them on and looked like a wise old owl.]"),
]
TRIPS = [
    ("in a small boat", "boat", "[They saw silver fish and a turtle on a rock.|The waves rocked them softly, and the birds flew over their heads.]",
     "[A fish jumped out of the water and splashed {him}.|The wind blew {his} hat into the water, but a kind duck brought it back.]"),
    ("on the train", "train", "[They saw green fields, brown cows, and a long bridge.|Choo, choo! The houses and trees flew by.]",
     "[When the train went into a tunnel, everything was dark, and {H} held {ghis} hand.|{H} waved at the cows, and it looked like one of them smiled.]"),
    ("up the mountain", "mountain", "[They walked past tall trees and a cold, clear stream.|The path was long, and their legs were tired.]",
     "[At the top, {he} could touch a cloud.|{H} found a stone that looked just like a heart.]"),
    ("to the sea", "sea", "[They built a castle out of sand and looked for shells.|The water was blue, and the sand was warm.]",
     "[A big wave came, and the castle was gone, but they only laughed.|A little crab walked over {his} foot.]"),
    ("to the zoo", "zoo", "[They saw a sleepy lion and a very tall giraffe.|They saw three monkeys and an elephant with big ears.]",
     "[One of the monkeys took {his} hat and put it on!|The elephant splashed water on everyone.]"),
]

PLOTS = r'''
@lost
~ {He} had a {obj} that {he} loved very much.
~ {His} favorite thing was a {obj}.
~ {He} had a {obj}, and {he} took it everywhere.
> [went|walked|ran] to {the} with {his} {obj}
> took {his} {obj} to {the}
> was playing with {his} {obj} {at}
--?
{He} played [all morning|for a long time|and played] and had [a lot of|so much] fun.
{He} sang a little song on the way.
--
[But then|But when {he} looked around|But when it was time to go home], the {o} was gone!
Then a strong wind blew, and [suddenly|] the {o} was gone.
{He} stopped to [look at a butterfly|pick a flower|rest for a while]. When {he} looked again, the {o} was gone!
--
"Oh no! Where is my {o}?" cried {H}.
{H} was [very sad|so sad that {he} began to cry|very worried].
"My {o}! I have lost it!" said {H}, and {he} began to cry.
--
{He} looked {s1} and {s2}, but [it was not there|the {o} was not there].
{He} looked {s1}. It was not there. {He} looked {s2}. It was not there, either.
{He} looked everywhere, but {he} could not find it.
--
Then {fintro} came [by|along]. "[What is wrong|Why are you so sad|What happened], {H}?" asked {F}. "I lost my {o}," said {H}. "[Do not worry|Do not cry|Cheer up]. [We will find it|I will help you look|Let us look together]," said {F}.
Just then, {fintro} came by. "I will help you find it," said {F}.
{He} asked {fintro} for help. "[Of course I will help you|Yes, let us look together]," said {F}.
--
They looked and looked. [At last|In the end|Soon], {F} found the {o} {s3}.
{F} looked {s3}. "Here it is!" {fhe} [shouted|called].
[After a while|Soon], they saw something {oadj_or} {s3}. It was the {o}!
--
{H} hugged {F}. "Thank you! You are a [good|true|great|wonderful] friend," {he} said.
"Thank you so much, {F}!" said {H} with a big smile.
{H} [laughed and jumped for joy|was so happy that {he} danced].
==
They played with the {o} until the sun went down.
From that day on, {H} always took good care of {his} {o}.
[After that|And so], {H} and {F} played together every day.

@shy
~ {He} loved all animals, big and small.
~ {He} did not have many friends, but {he} wanted one.
> went for a walk {at}
> was [playing|sitting|walking] {at}
> heard a [soft|strange|tiny] sound {at}
--
{He} saw a [small|tiny|little|baby] {a} {s1}.
There, {s1}, sat a [small|tiny|little] {a}.
A [small|tiny|little] {a} was hiding {s1}.
--
It looked [hungry|cold|lonely|scared|lost].
The {a} was [all alone|very shy|shaking with fear|wet and cold].
--
"Hello, little {a}," said {H}. "[Do not be afraid. I will not hurt you.|Are you hungry?|Are you lost?|Where is your mother?]"
"Who are you?" asked {H} in a soft voice. The {a} did not [answer|move|make a sound].
--
{H} sat down and gave it some {food}.
{He} put some {food} on the ground and waited.
"[I have some {food}|Here are my {food2}]. [Would you like to try?|You can have them.]" {he} said.
--
Slowly, the {a} came [closer|out], and it began to eat.
The {a} took one step, and then another. [Soon it ate out of {his} hand.|Then it came and sat next to {him}.]
The {a} ate and ate. [Then it closed its eyes and fell asleep next to {him}.|Then it looked up at {him} and was not afraid anymore.]
--?
{H} named it {pet}.
"I will call you {pet}," said {H}.
"Can we keep it?" {H} asked {his} {g}. "[Yes, if you take good care of it|Of course]," said {G}.
==
From that day on, {H} and the {a} were best friends.
After that, the {a} came to see {him} every [day|morning].
{H} was never lonely again.
And wherever {H} went, the {a} came, too.

@rain
> went to {the} [to play|to have a picnic|to meet a friend]
> was walking home from {the}
> was playing {at}
--
[Soon|Suddenly|After a while], [dark|big gray] clouds came, and it began to rain.
Then the sky turned dark. [Drip, drop! The rain began to fall.|Boom! went the thunder.]
[Suddenly|All at once], the wind began to blow, and the rain came down.
--
"Oh no, I am getting wet!" [cried|said] {H}.
{H} was [scared of the thunder|cold and wet|far from home].
--
{He} ran and hid [under a big tree|in an old barn|under a bridge|in a small cave].
"I must find a dry place," {he} said, and {he} ran to [an old barn|a big tree|a small cave].
--
There {he} met {fintro}, who was [wet|cold|scared], too.
Someone was already there. It was {fintro}!
--
"May I sit with you?" asked {H}. "Of course," said {F}. "[It is warmer together.|We can wait together.|There is room for two.]"
"I do not like the rain," said {H}. "[Neither do I|Me neither]," said {F}. "[But it will stop soon.|But now we have each other.]"
--
They [sang songs|told funny stories|shared some {food}|counted the drops] until the rain stopped.
To pass the time, they [sang|told each other stories|played a guessing game]. Soon the rain stopped.
--?
Then a [beautiful|bright|big] rainbow filled the sky. "Look! [How pretty|So many colors]!" said {F}.
The sun came out, and everything [was shiny|smelled fresh and new].
==
{H} and {F} [walked home together|jumped in every puddle on the way home].
After that, {H} was not afraid of the rain anymore.
Now {H} smiles when it rains, because that is how {he} found a friend.

@share
> and {fintro} were playing {at}
> and {fintro} went to {the}
--
They found a {obj} {s1}.
There they saw a {obj} {s1}.
--
"It is mine! I saw it first!" said {H}. "No, it is mine!" said {F}.
"I want the {o}!" said {H}. "No, I want it!" said {F}.
Both of them wanted to [have|play with] the {o}.
--
They pulled and pulled, and the {o} fell [on the ground|into the mud].
They [argued|shouted] for a long time, and nobody had any fun.
{F} was [angry|sad] and turned away. {H} held the {o}, but it was no fun to play alone.
--
Then {H} thought about it. "I am sorry," {he} said. "[You can go first|We can take turns|You can have it today]."
"[Why do you not take turns|Why do you not play together]?" asked {his} {g}. {H} and {F} looked at each other. "[That is a good idea|We can do that]," said {H}.
--
{F} smiled. "Thank you, {H}! [Then it will be your turn|I am sorry, too]."
"I am sorry, too," said {F}. "[Let us play together|Let us share it]."
==
Soon they were laughing and playing together again.
And they both learned that [it is more fun to share|sharing makes friends].
From then on, the {o} belonged to both of them.

@bake
~ {He} loved to help in the kitchen.
~ {He} liked to cook for {his} friends.
> wanted to make {dish} for {his} {g}
> decided to make {dish}
--
{He} took some {i1}, some {i2}, and a big bowl.
"I need some {i1}, some {i2}, and some {i3}," {he} said.
--
But there was no {i3} left. So {he} [went|ran] to {fintro}. "[May|Can] I have some {i3}, please?" {he} asked. "[Of course|Here you are]," said {F}.
{^fintro} came to help. "I can bring the {i3}," said {F}.
--
{H} mixed everything with a wooden spoon. [Oops! Some of it landed on {his} nose.|Oops! What a mess!|It was hard work.]
They stirred and stirred. [Oops! The spoon fell on the floor.|"May I taste it?" asked {F}. "Not yet!" laughed {H}.]
--
Soon the [whole|] house smelled [sweet|wonderful|so good].
Then they had to wait. [It was so hard to wait!|Tick, tock, tick, tock.|At last, it was ready.]
--
"Surprise!" [said|called] {H}. {G} took a bite and smiled. "{dbest} {d} in the world!" {ghe} said.
{G} tried some. "Mmm! Did you make {dit} all by yourself?" {ghe} asked. "[My friend {F} helped me|{F} and I made {dit} together]," said {H}.
When {G} came home and saw the {d}, {ghe} was so happy that {ghe} [hugged {H}|danced around the table].
==
They ate {dit} together, and there was not even a crumb left.
{H} was [tired|covered in {i1}] but very [happy|proud].
"[Tomorrow|Next time], we will make even more!" said {H}.

@help
> saw an {e} {task} {at}
> was on {his} way to {the} when {he} saw an {e} {task}
--
"Can I help you?" asked {H}. "[Oh, yes, please|That is very kind of you]," said the {e}.
The {e} looked very [tired|sad]. "Let me help you," said {H}.
"Oh dear, oh dear!" said the {e}. "[Do not worry|Wait]! I will help you," said {H}.
--
So {H} {deed}.
{H} was small, but {he} {deed}.
--
"Thank you, {H}," said the {e}. "You have a [kind|big|good] heart."
The {e} smiled. "You are [small|young], but you are very [kind|strong]," {ehe} said.
--
{^ehe} gave {him} [a shiny coin|a red apple|a warm scarf|a small bell|a bag of nuts].
"This is for you," said the {e}, and {ehe} gave {him} [a shiny coin|a sweet pear|a tiny bell|a jar of honey].
--?
On the way home, {H} met {fintro} and told {fhim} all about it. "[I want to help people, too|You did a good thing]!" said {F}.
{H} shared it with {fintro}, [because sharing is nice|and they both smiled].
==
{H} felt [warm|happy|proud] inside all day long.
That day, {H} learned that even small hands can do big things.
[After that|From then on], the {e} and {H} were good friends.

@learn
~ More than anything, {he} wanted to {skill}.
~ All of {his} friends could {skill}, but {H} could not.
> wanted to learn how to {skill}
> tried to {skill} for the first time
--
{fail}
--
"I will never learn it!" [cried|said] {H}.
"It is too hard for me," {he} said, and {he} sat down.
{H} was [sad and wanted to give up|very angry and wanted to go home].
--
{^fintro} saw {him} and said, "[Do not give up!|Try again!|Keep trying!] [I will show you how.|I fell many times, too.|You can do it.]"
Then {fintro} came to {him}. "[It takes time|Nobody can do it on the first day|Even I had to practice]," said {F}. "[Let us try it together.|Try it one more time.]"
--
So {H} tried again, and again, and again.
{H} took a deep breath and tried again.
[Every day|Day after day], {he} practiced a little more.
--
{win}
--
"I did it! I did it!" shouted {H}.
"Look at me!" [called|shouted] {H}. {F} clapped and [cheered|laughed].
"I knew you could do it!" said {F}.
==
{H} was so proud that {he} [could not stop smiling|told everyone in the village].
Now {he} knew that you must never give up.
And the next day, {H} helped {his} little [brother|sister] to learn it, too.

@stuck
> heard a [small|sad|tiny] voice {at}
> was walking {at} when {he} heard a [small|sad] voice
--
"Help! Please help me!" said the voice. A [little|small|tiny] {a} was stuck {trap}.
It was a [little|small|tiny] {a}. It was stuck {trap}. "[Please help me|I cannot get out]!" it cried.
--
"[Do not be afraid|Hold on|Wait there]! I will help you," said {H}.
{H} tried to help, but {he} was too small to do it alone.
--
{He} ran to get {fintro}. "Come quickly!" {he} said. "[A {a} needs our help!|I need your help!]"
{He} called {fintro}, and together they made a plan.
--
{how}
--
At last, the {a} was [safe|free]. "Thank you, thank you!" it said.
The {a} was free! It [jumped for joy|laughed and cried at the same time]. "You are [so brave|my heroes]," it said.
--?
{^G} heard about it and was very proud of them.
"We make a great team," said {F}.
==
After that, the {a} [came to visit them every day|was their friend forever].
{H} and {F} went home [tired but happy|with a warm feeling in their hearts].
And they [all|] had some {food} together.

@box
> found an old [wooden|] box {s1} {at}
> was digging {at} and found an old box
--
It was locked. "What is inside?" [asked {H}|{he} wondered].
{H} wanted to open it, but it was locked.
--
{He} showed it to {fintro}. "Maybe it is full of [gold|candy|toys]!" said {F}.
{^fintro} came to look. "[Shake it!|Let us open it!|Maybe there is a treasure inside!]" said {F}.
--
They looked everywhere for the key. At last, {F} found [a tiny|a rusty|a golden] key {s2}.
"We need a key," said {H}. They looked {s2}, and there it was!
--
Click! The box opened. Inside, there was {gift}.
{H} turned the key, and the lid opened [slowly|with a loud creak]. They saw {gift}.
--
{giftuse}
==
{H} and {F} kept the box and put all their treasures in it.
It was the best [day|adventure] they had ever had.
"I wonder what we will find tomorrow," said {F}.

@night night
> could not sleep
> was lying in bed
> woke up in the dark
--
{^noise}! There was a strange sound {nwhere}.
Then {he} heard something {nwhere}. {^noise}!
--
"Who is there?" {he} whispered. [Nobody answered.|There was no answer.]
"Is it a monster?" {H} [thought|whispered]. {He} [hid under the blanket|held {his} teddy bear tight].
{His} heart went boom, boom, boom.
--
But {H} was brave. {He} took {his} little lamp and went to look.
{He} got out of bed and tiptoed over the cold floor.
--
{reveal}
--
{H} laughed. "[You are not scary at all|So it was you|I was afraid of nothing]!" {he} said.
"Oh, it is only you!" said {H}, and {he} was not afraid anymore.
--?
{^G} came in and gave {him} a hug. "[The dark is only the night's blanket|There is nothing to be afraid of]," said {G}. "[Sleep well.|Good night, {H}.]"
{H} drank a glass of warm milk.
==
Then {he} went back to bed, and soon {he} was fast asleep.
That night, {he} dreamed of [the moon and the stars|a big boat in the sky|a house made of cookies].
And {H} slept until the sun came up.

@seed
~ {He} loved to work in the garden.
> planted a [tiny|small|little] seed in the garden
> found a [tiny|small|strange] seed and planted it in the garden
--
Every day, {he} gave it water. But nothing happened.
{He} gave it water in the morning and sang to it in the evening.
--
"[Why does it not grow|When will it grow]?" {he} asked {his} {g}. "[Be patient|Wait a little longer|Good things take time]," said {G}.
"Maybe it does not like me," {H} said. "[It is only sleeping|It just needs time]," said {his} {g}.
--
Then, one morning, a green leaf came out of the ground. "[Look, it is growing|It is here, it is here]!" [cried|shouted] {H}.
After [many days|a week|a long time], a tiny green leaf came up.
--
It grew and grew until it was {plant}.
The sun shone, the rain fell, and soon it was {plant}.
--
{plantuse}
==
{H} was very proud of {his} {p}.
"[I will plant another one|Next year, I will plant ten of them]!" said {H}.
And {H} learned that good things take time.

@race
> and {fintro} wanted to have a race {at}
> and {fintro} had a race {at}
--
"I am the fastest!" said {F}. "[We will see|Let us find out]," said {H}.
"Let us run to [the big tree|the old mill|the bridge] and back," said {F}. "I am ready," said {H}.
--
"One, two, three, go!" They ran as fast as they could.
Off they went! {F} was fast, and {H} was far behind.
--
But then {F} [fell over a stone|slipped in the mud] and hurt {fhis} [foot|knee].
Suddenly, {F} [fell down|tripped over a root]. "Ouch!" {fhe} cried.
--
{H} could win now. But {he} stopped and [helped {F}|gave {F} a hand]. "Are you all right?" {he} asked.
{H} ran past, but then {he} turned around and came back. "Let me help you," {he} said.
--
They walked to the end together, hand in hand.
"You could have won," said {F}. "[A friend is better than a prize|You are more important than winning]," said {H}.
==
Everyone cheered for both of them.
{G} gave both of them a [medal made of paper|big hug|sweet apple].
In the end, they both won.

@party
> woke up early and smiled, because it was {his} birthday
> woke up and jumped out of bed, because it was {his} birthday
--
But nobody said, "Happy birthday!" {His} {g} was busy, and the house was quiet.
{He} ran to the kitchen, but nobody was there.
--
"Did everyone forget?" {he} thought. {He} felt [very sad|lonely].
{H} went for a walk {at} and tried not to cry.
--
Then {fintro} came running. "Come with me, {H}! [Quick!|Close your eyes!]" said {F}.
"There you are!" said {fintro}. "[Come with me|Follow me], and do not ask why."
--
They went to {the}, and [suddenly|] everyone jumped out. "Surprise! Happy birthday!"
When {he} opened the door, all of {his} friends were there. "Surprise!" they shouted.
--
There was a big cake, and {G} gave {him} a {obj}.
{F} gave {him} a {obj}. "[It is just what I wanted|I love it]!" said {H}.
==
It was the best birthday ever.
They danced and sang until the stars came out.
"I will never forget this day," said {H}.

@trip
> went on a trip {trip} with {his} {g}
> and {his} {g} went on a trip {trip}
--
"Are we there yet?" asked {H}. "[Not yet|Soon]," said {G}.
{He} was so excited that {he} could not sit still.
{H} had a bag with some {food} and a {obj}.
--
{tripsee}
--
{tripfun}
--
"[This is so much fun|I like it here|Can we stay a little longer]!" said {H}. {G} [laughed|smiled].
For lunch, they ate some {food} in the sun.
--?
"What did you like best?" asked {G}. "[Everything|Being here with you]!" said {H}.
==
When they came home, {H} was tired but happy.
On the way home, {H} fell asleep and dreamed of the {tripword}.
"Can we go again tomorrow?" asked {H}.

@truth
> saw a big [chocolate|apple|honey] cake on the table
> came home and saw a cake on the kitchen table
--
It was for the party, but it [looked|smelled] so good!
"Only one little bite," {he} [thought|said].
--
{He} ate one piece, and then another, and then the cake was gone.
{He} took a bite, and then one more. Soon half of the cake was gone!
--
"Who ate the cake?" asked {G}. {H} looked at the floor. There were crumbs on {his} nose.
Then {G} came in. "Where is the cake?" {ghe} asked. {H} did not know what to say.
--
"It was me," said {H}. "I am [so|very] sorry."
{H} wanted to say that it was the cat. But that was not true. "I did it," {he} said. "I am sorry."
--
{G} was not angry. "Thank you for telling the truth," {ghe} said.
"[I am sad about the cake|That was not right], but I am glad that you told me the truth," said {G}.
==
Then they baked a new cake together, and it was even better.
After that, {H} always asked first.
{H} helped to make a new cake, and this time {he} only licked the spoon.

@wish night
> looked up and saw a falling star
> sat at the window and looked at the stars
--
"I wish I had a friend," [said|whispered] {H}.
{He} closed {his} eyes. "I wish for a friend," {he} whispered.
--?
{^G} kissed {him} good night. "[Wishes come true if you wait|Sleep well, little star]," said {G}.
The moon smiled down, and everything was quiet.
--
The next morning, [there was a knock at the door|someone knocked at the door]. It was {fstranger}.
In the morning, {H} went to {the}. There {he} met {fstranger}.
--
"Hello, I am {F}. [I am new here|We just moved here]. Do you want to play?"
"Hi! My name is {F}," {fhe} said. "[Can I play with you|Will you be my friend]?"
--
"Yes!" said {H}. {He} could not believe it. {His} wish had come true!
{H} smiled from ear to ear. "I would love to," {he} said.
--
They played with {his} {obj} all day long.
They [ran to {the}|climbed a tree|built a little house] and talked about everything.
==
That night, {H} looked up at the stars and said, "Thank you."
And from that day on, {H} and {F} were best friends.

@snow
> woke up and saw that everything was white
> looked out of the window and saw the first snow
--
"Snow! Snow!" {he} shouted. {He} put on {his} warm boots and ran outside.
{He} put on {his} [warm coat|red boots|blue hat] and ran to {the}.
--
There {he} met {fintro}. "Let us build a snowman!" said {F}.
{^fintro} was already there. "[Come on|Hurry up], let us build a snowman!" said {F}.
--
They rolled one big ball, one small ball, and one tiny ball.
They rolled the snow into big, round balls. It was cold, but it was fun.
--
"He needs a nose," said {H}. {F} [ran home and brought|gave him] a carrot.
"He looks cold," said {F}. So {H} gave him {his} [{obj_color} hat|{obj_color} scarf].
--
The snowman looked so [real|happy] that they both laughed.
"What is his name?" asked {F}. "[His name is Mister Snow|Let us call him Frosty]," said {H}.
--?
Then they drank hot chocolate by the fire.
A little {a} came and sat on the snowman's [head|arm].
==
When they went home, it looked like the snowman [smiled|waved] at them.
The next week, the snow was gone, but {H} and {F} were still good friends.
It was a perfect winter day.

@lostway
> walked too far into the forest
> followed a butterfly into the forest
> went into the deep forest to look for [berries|mushrooms|nuts]
--
Soon {he} did not know the way home. [All the trees looked the same.|The sun was going down.]
{He} turned around, but the path was gone.
--
"I am lost," said {H}, and a tear ran down {his} nose.
"Hello? Is anybody there?" called {H}. [Only the wind answered.|It was very quiet.]
--
Then a wise old owl looked down from a branch. "[Why are you crying|Where do you want to go], {little}?" it asked. "I want to go home," said {H}.
Just then, {fstranger} came out from behind a tree. "[I know the way|I can help you]," said {F}. "[Follow me|Come with me]!"
--
They went over a stream, past a big rock, and through the tall grass.
They followed the [river|little stones|light of the moon] until they saw a light.
--
At last, {H} saw {his} house. {His} {g} was standing at the door.
"There is my house!" [shouted|cried] {H}.
--
"I was so worried!" said {G}, and {ghe} hugged {H} tight.
"You are home!" [cried|said] {G}. "[Come in and eat some soup|I am so glad]."
==
From then on, {H} always stayed on the path.
That night, {H} was happy to be in {his} own warm bed.

@sick
> went to visit {fintro}
> wanted to play with {fintro}
--
But {F} was sick and had to stay in bed.
But {F} was lying in bed with a [red nose|cold|sore throat]. "[I cannot come out today|I feel so bad]," {fhe} said.
--
"[I will make you feel better|I will take care of you]," said {H}.
{H} thought hard. How could {he} cheer up {his} friend?
--
{He} [ran home and|] made some hot soup with [carrots and beans|noodles].
{He} picked some [yellow|white|pink] flowers in the garden and put them next to the bed.
{He} brought {his} {obj} and put it on the bed.
--
Then {he} [read a funny story|sang a silly song|told a long story about a brave {a}], and {F} began to laugh.
"Once there was a {a} who wore a big hat," {H} began. {F} laughed so hard that the bed shook.
--
"I feel [much|] better already," said {F}. "[You are the best doctor in the world|Thank you for coming]."
[Two days later|The next day], {F} was [not sick anymore|as strong as a bear].
==
A good friend is the best medicine.
And when {H} was sick a week later, {F} came and did the same for {him}.
Soon they were running around {at} again.

@new
> saw someone new {at}
> went to {the} and saw someone sitting all alone
--
It was {fstranger}. {^fhe} [sat alone and looked at the ground|did not talk to anyone].
"Who is that?" {he} thought. It was {fstranger}.
--
{H} was shy, too, but {he} went over. "Hi, I am {H}. What is your name?" "I am {F}," said {F} in a quiet voice. "[Do you want to play with me|Would you like to play]?" asked {H}.
"Do you want to play with us?" asked {H}. {F} looked up. "[Really|Can I]?" {fhe} asked.
--
{H} [showed {fhim}|gave {fhim}] {his} {obj}. "[We can play with it together|You can try it]," {he} said.
"I do not know any games," said {F}. "[That is all right|Do not worry]. I will show you," said {H}.
--
They played [hide and seek|tag|a new game] {at}. {F} hid {s1}, and {H} needed a long time to find {fhim}.
They [ran|jumped|laughed] all afternoon, and {F} was not shy anymore.
--
"This was the best day!" said {F}. "[Will you come again tomorrow|Can we play again tomorrow]?" "Of course!" said {H}.
When it was time to go home, {F} [waved and smiled|gave {H} a flower].
==
It is nice to make a new friend.
From that day on, {F} was never alone again.
The next day, they met {at} again, and the day after that, too.

@fix
~ {He} had a {obj} that {his} {g} had made for {him}.
> was playing with {his} {obj}
> dropped {his} {obj} on the floor
--
[Crack|Oh no]! [Suddenly, the|The] {o} was broken.
Then there was a loud crack. The {o} was broken!
--
"[Now it is broken forever|It was my favorite]," [cried|said] {H}.
{H} held the broken {o} in {his} hands and began to cry.
--
"Let me see," said {his} {g}. {^ghe} looked at it for a long time.
{He} took it to {his} {g}. "Can you fix it?" {he} asked. "[We can fix it together|Let me see]," said {G}.
--
They used [some glue and a piece of string|a needle and some thread|a little hammer and two nails].
{G} held it, and {H} put on the glue. They had to be very careful.
--
[In the evening|At last], the {o} was [as good as new|even better than before].
There was still a small line on it, but {H} liked it even more.
--
"Thank you, {G}! You can fix everything," said {H}.
"You see?" said {G}. "[Many broken things can be fixed|Do not give up on the things you love]."
==
After that, {H} was always very careful with {his} {o}.
Now {H} fixes the toys of all {his} friends.

@band
~ {He} loved music and sang all day.
> wanted to start a band
> found an old drum in the attic
--
"I can play the drum," {he} said. "But who can [sing|play the flute]?"
Boom, boom! {He} played so loud that the birds flew away.
--
{^fintro} heard it. "I have a [bell|flute|horn]. Can I play, too?" asked {F}.
{He} asked {fintro}. "I can [sing|play the flute|play the bell]!" said {F}.
--
At first, it sounded terrible. [Even the cat ran away.|"Oh no, my ears!" said {G}.]
They played too fast, and then too slow.
--
"We have to listen to each other," said {H}. So they [tried again|practiced every day].
"Let us count to three and start together," said {F}. "One, two, three!"
--
Now it sounded [wonderful|like real music]! [Even the birds stopped to listen.|Everyone began to dance.]
That evening, they played {at}, and the whole village came to listen.
==
Everyone clapped, and {H} [took a bow|smiled from ear to ear].
"Again, again!" shouted everyone.
And they played until the moon came up.
'''

LOVES = ["sing", "dance", "draw", "read", "run", "climb trees", "look at the stars", "tell stories", "play outside",
         "collect stones", "count the clouds", "listen to the birds", "make things", "ask questions"]
DAYS = ["day", "day", "morning", "afternoon"]
SKIES = ["sunny", "warm", "bright", "windy", "cold", "quiet", "beautiful", "lovely"]


def parse_plots(text):
    plots, beat = [], None
    for line in text.strip().splitlines():
        line = line.strip()
        if not line:
            continue
        if line[0] == "@":
            name, *flags = line[1:].split()
            plots.append(dict(name=name, night="night" in flags, back=[], first=[], beats=[], end=[]))
        elif line[0] == "~":
            plots[-1]["back"].append(line[2:])
        elif line[0] == ">":
            plots[-1]["first"].append(line[2:])
        elif line == "==":
            beat = plots[-1]["end"]
        elif line.startswith("--"):
            beat = []
            plots[-1]["beats"].append((line == "--?", beat))
        else:
            beat.append(line)
    return plots


PLOT_LIST = parse_plots(PLOTS)
INNERMOST = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\^?)(\w+)\}")
ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])")
WRONG_AN = re.compile(r"\b([Aa])n (?=[^aeiouAEIOU\W])")


def cap(s):
    """Upper-cases the first letter, also when a quotation mark stands before it."""
    for i, c in enumerate(s):
        if c.isalpha():
            return s[:i] + c.upper() + s[i + 1:]
    return s


class Story:
    def __init__(self, rng):
        self.rng = rng
        self.slots = {}
        self.known_friend = False

    def fill(self, template):
        """Expands choices and slots until none is left (slots may hold templates)."""
        text = template
        while "[" in text or "{" in text:
            text = INNERMOST.sub(lambda m: self.rng.choice(m.group(1).split("|")), text)
            text = SLOT.sub(lambda m: cap(self.slots[m.group(2)]) if m.group(1) else self.slots[m.group(2)], text)
        text = re.sub(r"  +", " ", text).replace(" ,", ",").strip()
        text = ARTICLE.sub(r"\1n ", text)
        return WRONG_AN.sub(r"\1 ", text)

    def person(self, animal):
        """Returns (name, kind, gender)."""
        rng, girl = self.rng, self.rng.random() < 0.5
        if animal:
            return rng.choice(SHE_ANIMALS if girl else HE_ANIMALS), rng.choice(SPECIES), girl
        return rng.choice(GIRLS if girl else BOYS), "girl" if girl else "boy", girl

    def cast_hero(self):
        rng, s = self.rng, self.slots
        self.animal = rng.random() < 0.4
        name, kind, girl = self.person(self.animal)
        self.hero = name, kind, girl
        s["H"], s["kind"] = name, kind
        s["he"], s["him"], s["his"] = ("she", "her", "her") if girl else ("he", "him", "his")
        s["He"], s["His"] = cap(s["he"]), cap(s["his"])
        s["adj"] = rng.choice(ADJ)
        s["little"] = "little " + kind
        s["np"] = rng.choice(["a {adj} {kind} named {H}", "a {adj} {kind} called {H}", "a little {kind} named {H}"])
        g = rng.choice(["mom", "dad", "grandma", "grandpa"])
        she = g in ("mom", "grandma")
        s["g"], s["G"], s["ghe"], s["ghis"] = g, cap(g), "she" if she else "he", "her" if she else "his"
        self.cast_friend()

    def cast_friend(self):
        rng, s = self.rng, self.slots
        while True:
            name, kind, girl = self.person(self.animal if rng.random() < 0.85 else not self.animal)
            if name != s["H"] and (kind != s["kind"] or kind in ("girl", "boy")):
                break
        self.friend_kind = kind
        s["F"] = name
        s["fhe"], s["fhim"], s["fhis"] = ("she", "her", "her") if girl else ("he", "him", "his")
        if kind in ("girl", "boy"):
            s["fstranger"] = f"a {kind} named {name}"
            s["fintro"] = rng.choice(["{his} friend {F}", "{his} friend {F}", "{his} " + ("sister" if girl else "brother") + " {F}"]) \
                if not self.animal else f"a {kind} named {name}"
        else:
            s["fstranger"] = f"a {kind} named {name}"
            s["fintro"] = rng.choice(["{F} the " + kind, "{his} friend {F} the " + kind, "a {kind2} named {F}"])
        s["kind2"] = kind
        self.known_friend = False

    def props(self):
        """Draws place, things and sub-plots anew (once an episode)."""
        rng, s = self.rng, self.slots
        s["the"], s["at"], spots = rng.choice(PLACES)
        s["s1"], s["s2"], s["s3"] = rng.sample(spots, 3)
        s["o"], s["oadj"] = rng.choice(OBJECTS), rng.choice(OBJ_ADJ)
        s["obj"] = s["oadj"] + " " + s["o"]
        s["obj_color"] = rng.choice(OBJ_ADJ[:8])
        s["oadj_or"] = s["oadj"] if s["oadj"] in OBJ_ADJ[:10] + ["shiny"] else "strange"
        s["a"] = rng.choice([a for a in ANIMALS if a not in (s["kind"], self.friend_kind)])
        s["food"] = rng.choice(FOODS)
        s["food2"] = rng.choice(["berries", "cookies", "nuts", "apples", "carrots", "grapes", "seeds"])
        s["pet"] = rng.choice(PETS)
        s["dish"], s["d"], s["dit"], ing = rng.choice(DISHES)
        s["dbest"] = "These are the best" if s["dit"] == "them" else "This is the best"
        s["i1"], s["i2"], s["i3"] = rng.sample(ing, 3)
        s["skill"], s["fail"], s["win"] = rng.choice(SKILLS)
        s["trap"], s["how"] = rng.choice(TRAPS)
        s["e"], s["ehe"], ehim = rng.choice(ELDERS)
        s["ehis"] = "her" if ehim == "her" else "his"
        s["task"], s["deed"] = rng.choice(TASKS)
        s["noise"], s["nwhere"], s["reveal"] = rng.choice(NOISES)
        s["plant"], s["p"], s["plantuse"] = rng.choice(PLANTS)
        s["gift"], s["giftuse"] = rng.choice(GIFTS)
        s["trip"], s["tripword"], s["tripsee"], s["tripfun"] = rng.choice(TRIPS)

    def when(self, plot):
        rng = self.rng
        if plot["night"]:
            return rng.choice(["One night", "One evening", "One [dark|quiet|warm|windy] night"])
        if plot["name"] == "snow":
            return rng.choice(["One winter morning", "One cold morning", "One day in winter"])
        skies = SKIES[:3] if plot["name"] == "rain" else SKIES
        return rng.choice(["One day", "One day", f"One {rng.choice(DAYS)}", f"One {rng.choice(skies)} {rng.choice(DAYS)}"])

    def opening(self, plot):
        """The sentences up to and including the first event."""
        rng = self.rng
        first = rng.choice(plot["first"])
        when = self.when(plot)
        style = rng.random()
        if style < 0.22:   # no introduction: the first event brings the hero on stage
            return [when + ", {np} " + first + "."]
        if style < 0.36:
            sub = "{H}" if not self.animal else "{H} the {kind}"
            return [when + ", " + sub + " " + first + "."]
        home = rng.choice(["in a small house", "in a little village", "in the forest", "near the sea", "on a farm",
                           "at the edge of the forest", "by a blue lake", "under an old tree" if self.animal else "in a big city",
                           "at the foot of a mountain", "in a green valley"])
        intro = rng.choice([
            "Once upon a time, there was {np}.",
            "Once upon a time, there was {np}.",
            "Once upon a time, {np} lived " + home + ".",
            "Once upon a time, there lived {np} " + home + ".",
            "There once was {np}.",
            "There was once {np} who lived " + home + ".",
            "In a [small|quiet|pretty] village, there lived {np}.",
            "[Long ago|Far away], {np} lived " + home + ".",
            "{H} was a {adj} {kind}[| who lived " + home + "].",
            "{H} was a {adj} {kind} who loved to " + rng.choice(LOVES) + ".",
            cap(home) + ", there lived {np}.",
        ])
        out = [intro]
        loved = "who loved" in intro
        if plot["back"] and rng.random() < 0.6:
            out.append(rng.choice(plot["back"]))
        elif not loved and rng.random() < 0.5:
            a, b = rng.sample(LOVES, 2)
            out.append(rng.choice(["{He} loved to " + a + ".", "{H} loved to " + a + ".", "{He} liked to " + a + " and " + b + ".",
                                   "Every day, {he} liked to " + a + "."]))
        out.append(when + ", " + rng.choice(["{he}", "{H}", "{H}"]) + " " + first + ".")
        return out

    def tell(self):
        rng = self.rng
        self.cast_hero()
        episodes = rng.choices([1, 2, 3], [93, 5, 2])[0]
        out = []
        for k, plot in enumerate(rng.sample(PLOT_LIST, episodes)):
            if k and rng.random() < 0.5:
                self.cast_friend()
            elif k:   # a friend we met in an earlier episode
                self.slots["fintro"] = self.slots["fstranger"] = rng.choice(["{F}", "{his} friend {F}"])
            self.props()
            if k == 0:
                out += [cap(self.fill(t)) for t in self.opening(plot)]
            else:
                when = rng.choice(["The next night", "A few days later, in the evening"]) if plot["night"] else \
                    rng.choice(["The next day", "The next morning", "A week later", "A few days later"])
                out.append(cap(self.fill(when + ", {H} " + rng.choice(plot["first"]) + ".")))
            for optional, beat in plot["beats"]:
                if not (optional and rng.random() < 0.5):
                    out.append(cap(self.fill(rng.choice(beat))))
            if k == episodes - 1 or rng.random() < 0.3:
                out.append(cap(self.fill(rng.choice(plot["end"]))))
        if rng.random() < 0.1:
            out.append("The end.")
        return " ".join(out)


def stories(n, seed):
    """n stories; the same (n, seed) always gives the same text."""
    rng = random.Random(seed)
    return [Story(rng).tell() for _ in range(n)]


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="Print stories written by the grammar.")
    ap.add_argument("-n", type=int, default=5, help="how many (default 5)")
    ap.add_argument("--seed", type=int, default=0, help="seed of the random numbers (default 0)")
    args = ap.parse_args()
    print("\n\n".join(stories(args.n, args.seed)))

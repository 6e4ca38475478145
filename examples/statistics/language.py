"""Guesses the language of a text from its most common words."""

from typing import NamedTuple

FEWEST_HITS = 3

_STOP_WORDS = {
    "en": (
        "the of and to in a is that it for was on are as with be this by at from have not or had but which you they"
        " we an were their been has will would there what if can all our your his her she he its i my me do so when"
        " who them than then into about could should these those also any no more some other out up"
    ),
    "de": (
        "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat"
        " dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis"
        " mehr durch man wir ihr ihre uns unser unsere ich mir mich sehr wenn kann können diese dieser dieses"
    ),
    "fr": (
        "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec son aux"
        " d'un cette d'une ont ses mais comme on tout nous sa fait été aussi leur bien peut ces y deux vous votre vos"
        " notre nos je j'ai c'est qu'il n'est ou où elle même si sans très être"
    ),
    "es": (
        "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque"
        " esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante todos uno les ni"
        " contra otros ese eso ante ellos e esto mí antes algunos qué unos yo otro usted es son fue era está"
    ),
    "it": (
        "di e il la che in a per un del non è una i le da si con come dei alla più al della sono nel anche lo ma ha"
        " questo gli delle o se dal nella su ci cui sua suo loro essere stato tra sia due questa quando dalla degli"
        " ai noi voi io mi ti vi molto tutti nostro nostra vostro fra senza perché dove chi"
    ),
    "nl": (
        "de van het een en in is dat op te zijn met voor die niet aan er om ook als dan maar bij of uit nog naar heeft"
        " hij ze wordt door wij tot je mijn deze over zo hebben worden al meer haar was geen kan dit ik we u uw ons"
        " onze zich had hun zou werd wat wel toch moet zal omdat waar deze daar"
    ),
}
STOP_WORDS = {name: frozenset(words.split()) for name, words in _STOP_WORDS.items()}


class Guess(NamedTuple):
    language: str | None
    confidence: float


def guess(words: list[str]) -> Guess:
    """Return the language with the most stop words.

    The confidence grows with their number and the lead over the next.
    """
    folded = [word.casefold() for word in words]
    hits = {name: sum(word in stop_words for word in folded) for name, stop_words in STOP_WORDS.items()}
    best, second = sorted(hits, key=lambda name: hits[name], reverse=True)[:2]
    if hits[best] < FEWEST_HITS or hits[best] == hits[second]:
        return Guess(None, 0.0)
    lead = 1 - hits[second] / hits[best]
    amount = min(1.0, hits[best] / 20)
    return Guess(best, round(0.4 + 0.35 * lead + 0.24 * amount, 2))

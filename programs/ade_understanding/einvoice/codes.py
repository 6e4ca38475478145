"""Code lists that e-invoices use."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CURRENCIES = _words(
    """AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF
    CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF
    GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD
    LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR
    PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY
    TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG XAU XCD XCG XDR XOF XPD XPF XPT XSU XUA YER
    ZAR ZMW ZWG ZWL"""
)
COUNTRIES = _words(
    """AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA
    CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH EL ER ES ET FI FJ FK FM FO FR GA
    GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE
    KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU
    MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA
    SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM
    US UY UZ VA VC VE VG VI VN VU WF WS XI XK YE YT ZA ZM ZW 1A"""
)
# UNTDID 1001, as far as EN 16931 allows it, and the types of FatturaPA.
DOCUMENT_TYPES = _words(
    """71 80 81 82 83 84 102 130 202 203 204 211 218 219 261 262 295 296 308 325 326 331 380 381 382 383 384 385 386 387
    388 389 390 393 394 395 396 420 456 457 458 471 472 473 500 501 502 503 527 532 553 575 623 633 751 780 817 870 875
    876 877 935"""
) | {f"TD{number:02}" for number in range(1, 30)}
# UNTDID 5305; IC is the one of ZUGFeRD 1 for K. FatturaPA has its own ones, see `is_tax_category`.
TAX_CATEGORIES = frozenset({"S", "Z", "E", "AE", "K", "IC", "G", "O", "L", "M", "B"})
# Categories whose rate is always zero.
WITHOUT_TAX = frozenset({"Z", "E", "AE", "K", "IC", "G", "O"})
# Readable names of common units (UN/ECE recommendation 20).
UNITS = {
    "C62": "piece", "H87": "piece", "XPP": "piece", "EA": "each", "PCE": "piece", "NAR": "piece", "SET": "set",
    "PR": "pair", "DZN": "dozen", "XPK": "package", "XBX": "box", "XCT": "carton", "XBO": "bottle", "XPX": "pallet",
    "KGM": "kg", "GRM": "g", "TNE": "t", "MGM": "mg", "LTR": "l", "MLT": "ml", "MTR": "m", "CMT": "cm", "MMT": "mm",
    "KMT": "km", "KTM": "km", "MTK": "m²", "MTQ": "m³", "HUR": "hour", "MIN": "minute", "SEC": "second", "DAY": "day",
    "WEE": "week", "MON": "month", "ANN": "year", "KWH": "kWh", "MWH": "MWh", "KWT": "kW", "P1": "percent",
    "LS": "lump sum", "E48": "service unit", "NPR": "pair", "HAR": "ha",
}  # fmt: skip


def is_tax_category(code: str, syntax: str) -> bool:
    if syntax == "FatturaPA":
        # N1 to N7 with a decimal, or none for the ordinary rate.
        return not code or (code[0] == "N" and code[1:2] in tuple("1234567") and code[2:3] in ("", "."))
    return code in TAX_CATEGORIES

"""How many cores a VM size has, and which family's quota they count against."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class VmSize:
    cores: int
    family: str


_FAMILIES = {
    "standardAv2Family": "a1_v2=1 a2_v2=2 a4_v2=4 a8_v2=8 a2m_v2=2 a4m_v2=4 a8m_v2=8",
    "standardDv2Family": "d1_v2=1 d2_v2=2 d3_v2=4 d4_v2=8 d5_v2=16 d11_v2=2 d12_v2=4 d13_v2=8 d14_v2=16",
    "standardDSv2Family": "ds1_v2=1 ds2_v2=2 ds3_v2=4 ds4_v2=8 ds5_v2=16 ds11_v2=2 ds12_v2=4 ds13_v2=8 ds14_v2=16",
    "standardDv3Family": "d2_v3=2 d4_v3=4 d8_v3=8 d16_v3=16 d32_v3=32 d48_v3=48 d64_v3=64",
    "standardDSv3Family": "d2s_v3=2 d4s_v3=4 d8s_v3=8 d16s_v3=16 d32s_v3=32 d48s_v3=48 d64s_v3=64",
    "standardDDSv4Family": "d2ds_v4=2 d4ds_v4=4 d8ds_v4=8 d16ds_v4=16 d32ds_v4=32 d48ds_v4=48 d64ds_v4=64",
    "standardDSv5Family": "d2s_v5=2 d4s_v5=4 d8s_v5=8 d16s_v5=16 d32s_v5=32 d48s_v5=48 d64s_v5=64 d96s_v5=96",
    "standardDADSv5Family": "d2ads_v5=2 d4ads_v5=4 d8ads_v5=8 d16ads_v5=16 d32ads_v5=32 d64ads_v5=64 d96ads_v5=96",
    "standardEDSv4Family": "e2ds_v4=2 e4ds_v4=4 e8ds_v4=8 e16ds_v4=16 e32ds_v4=32 e48ds_v4=48 e64ds_v4=64",
    "standardESv5Family": "e2s_v5=2 e4s_v5=4 e8s_v5=8 e16s_v5=16 e32s_v5=32 e64s_v5=64 e96s_v5=96",
    "standardFSv2Family": "f2s_v2=2 f4s_v2=4 f8s_v2=8 f16s_v2=16 f32s_v2=32 f48s_v2=48 f64s_v2=64 f72s_v2=72",
    "standardNCSv3Family": "nc6s_v3=6 nc12s_v3=12 nc24s_v3=24 nc24rs_v3=24",
    "Standard NCASv3_T4 Family": "nc4as_t4_v3=4 nc8as_t4_v3=8 nc16as_t4_v3=16 nc64as_t4_v3=64",
    "StandardNCADSA100v4Family": "nc24ads_a100_v4=24 nc48ads_a100_v4=48 nc96ads_a100_v4=96",
    "StandardNCadsH100v5Family": "nc40ads_h100_v5=40 nc80adis_h100_v5=80",
    "StandardNVADSA10v5Family": "nv6ads_a10_v5=6 nv12ads_a10_v5=12 nv18ads_a10_v5=18 nv36ads_a10_v5=36",
    "Standard NDASv4_A100 Family": "nd96asr_v4=96 nd96amsr_a100_v4=96",
    "standardNDSH100v5Family": "nd96isr_h100_v5=96",
    "standardHBrsv3Family": "hb120rs_v3=120 hb120-64rs_v3=120 hb120-16rs_v3=120",
}
_SIZES = {
    f"standard_{name}": VmSize(int(cores), family)
    for family, sizes in _FAMILIES.items()
    for name, cores in (size.split("=") for size in sizes.split())
}
#: Azure's newer names say their cores: standard_d16as_v5 has 16.
_CONVENTION = re.compile(r"(?:standard|basic)_(?P<letters>[a-z]+)(?P<cores>\d+)(?P<rest>\w*)")
_CORES_OF_THE_UNKNOWN = 4


def vm_size(name: str, known: Mapping[str, VmSize]) -> VmSize:
    """A size by its name in any case: from `known`, from the table, else by Azure's naming convention."""
    name = name.lower()
    found = known.get(name) or _SIZES.get(name)
    if found:
        return found
    parts = _CONVENTION.fullmatch(name)
    if not parts:
        return VmSize(_CORES_OF_THE_UNKNOWN, name)
    family = f"standard{parts['letters'].upper()}{parts['rest'].replace('_', '')}Family"
    return VmSize(int(parts["cores"]), family)

"""The dtypes. Generated from compiler/ir/dtype_table.h by opgen; do not edit."""

# ruff: noqa: E501
from typing import Dict, Optional, Tuple

from kiln._basics.dtype import DType, FloatFormat

bool_ = DType("bool", 1, 1, "bool")
int8 = DType("int8", 2, 1, "int8")
int16 = DType("int16", 3, 2, "int16")
int32 = DType("int32", 4, 4, "int32")
int64 = DType("int64", 5, 8, "int64")
uint8 = DType("uint8", 6, 1, "uint8")
uint16 = DType("uint16", 7, 2, "uint16")
uint32 = DType("uint32", 8, 4, "uint32")
uint64 = DType("uint64", 9, 8, "uint64")
float16 = DType("float16", 10, 2, "float16")
bfloat16 = DType("bfloat16", 11, 2, None)
float32 = DType("float32", 12, 4, "float32")
float64 = DType("float64", 13, 8, "float64")
float8_e4m3 = DType("float8_e4m3", 14, 1, None)
float8_e5m2 = DType("float8_e5m2", 15, 1, None)

ALL = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2)

FORMATS: Dict[DType, FloatFormat] = {
    float16: FloatFormat(10, 5, True),
    bfloat16: FloatFormat(7, 8, True),
    float32: FloatFormat(23, 8, True),
    float64: FloatFormat(52, 11, True),
    float8_e4m3: FloatFormat(3, 4, False),
    float8_e5m2: FloatFormat(2, 5, True),
}

# The names in safetensors files.
SAFETENSORS: Dict[str, DType] = {
    "BOOL": bool_,
    "I8": int8,
    "I16": int16,
    "I32": int32,
    "I64": int64,
    "U8": uint8,
    "U16": uint16,
    "U32": uint32,
    "U64": uint64,
    "F16": float16,
    "BF16": bfloat16,
    "F32": float32,
    "F64": float64,
    "F8_E4M3": float8_e4m3,
    "F8_E5M2": float8_e5m2,
}

# The names of ml_dtypes' NumPy dtypes, of the dtypes that NumPy itself lacks.
ML_DTYPES: Dict[str, DType] = {
    "bfloat16": bfloat16,
    "float8_e4m3fn": float8_e4m3,
    "float8_e5m2": float8_e5m2,
}

# The classes of the table of ops.
CLASSES: Dict[str, Tuple[DType, ...]] = {
    "any": (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    "numeric": (int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64),
    "float": (float16, bfloat16, float32, float64),
    "integer": (int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    "integer_or_bool": (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    "bool": (bool_,),
    "float_or_bool": (bool_, float16, bfloat16, float32, float64),
    "uint32": (uint32,),
}

# To what a dtype and each of ALL promote, and None where no dtype holds both.
PROMOTED: Dict[DType, Tuple[Optional[DType], ...]] = {
    bool_: (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    int8: (int8, int8, int16, int32, int64, int16, int32, int64, None, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    int16: (int16, int16, int16, int32, int64, int16, int32, int64, None, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    int32: (int32, int32, int32, int32, int64, int32, int32, int64, None, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    int64: (int64, int64, int64, int64, int64, int64, int64, int64, None, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    uint8: (uint8, int16, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    uint16: (uint16, int32, int32, int32, int64, uint16, uint16, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    uint32: (uint32, int64, int64, int64, int64, uint32, uint32, uint32, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    uint64: (uint64, None, None, None, None, uint64, uint64, uint64, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2),
    float16: (float16, float16, float16, float16, float16, float16, float16, float16, float16, float16, float32, float32, float64, float16, float16),
    bfloat16: (bfloat16, bfloat16, bfloat16, bfloat16, bfloat16, bfloat16, bfloat16, bfloat16, bfloat16, float32, bfloat16, float32, float64, bfloat16, bfloat16),
    float32: (float32, float32, float32, float32, float32, float32, float32, float32, float32, float32, float32, float32, float64, float32, float32),
    float64: (float64, float64, float64, float64, float64, float64, float64, float64, float64, float64, float64, float64, float64, float64, float64),
    float8_e4m3: (float8_e4m3, float8_e4m3, float8_e4m3, float8_e4m3, float8_e4m3, float8_e4m3, float8_e4m3, float8_e4m3, float8_e4m3, float16, bfloat16, float32, float64, float8_e4m3, float16),
    float8_e5m2: (float8_e5m2, float8_e5m2, float8_e5m2, float8_e5m2, float8_e5m2, float8_e5m2, float8_e5m2, float8_e5m2, float8_e5m2, float16, bfloat16, float32, float64, float16, float8_e5m2),
}

__all__ = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"]

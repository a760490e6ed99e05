// The table of dtypes. Everything that a dtype needs besides its conversions and its number on the
// wire is here or follows from it, also in the clients: opgen makes their tables of this one.
#ifndef KILN_COMPILER_IR_DTYPE_TABLE_H_
#define KILN_COMPILER_IR_DTYPE_TABLE_H_

// KILN_DTYPES(ROW) expands to ROW(…) for each dtype, in the order of kiln.v1.DType, with
// - the constants of ir::DType and of kiln.v1.DType (without DTYPE_);
// - the name, which is the Python array API standard's, and the bytes of one element;
// - the kind, of DTypeKind;
// - of a float its format: the explicit bits of the mantissa and the bits of the exponent, either
//   as IEEE 754 uses them, or with numbers instead of infinities (OCP 8-bit floating point
//   specification, 2023);
// - the names in OpenCL C (of a short float, which arithmetic there does not take: of its bits), in
//   safetensors files, and in the Python package ml_dtypes if NumPy lacks the dtype.
// clang-format off
#define KILN_DTYPES(ROW)                                                                                                   \
  ROW(kBool,       BOOL,        "bool",        1, kBool,     NoFloat(),    "bool",             "BOOL",    "")              \
  ROW(kInt8,       INT8,        "int8",        1, kSigned,   NoFloat(),    "char",             "I8",      "")              \
  ROW(kInt16,      INT16,       "int16",       2, kSigned,   NoFloat(),    "short",            "I16",     "")              \
  ROW(kInt32,      INT32,       "int32",       4, kSigned,   NoFloat(),    "int",              "I32",     "")              \
  ROW(kInt64,      INT64,       "int64",       8, kSigned,   NoFloat(),    "long",             "I64",     "")              \
  ROW(kUInt8,      UINT8,       "uint8",       1, kUnsigned, NoFloat(),    "uchar",            "U8",      "")              \
  ROW(kUInt16,     UINT16,      "uint16",      2, kUnsigned, NoFloat(),    "ushort",           "U16",     "")              \
  ROW(kUInt32,     UINT32,      "uint32",      4, kUnsigned, NoFloat(),    "uint",             "U32",     "")              \
  ROW(kUInt64,     UINT64,      "uint64",      8, kUnsigned, NoFloat(),    "ulong",            "U64",     "")              \
  ROW(kFloat16,    FLOAT16,     "float16",     2, kFloat,    Ieee(10, 5),  "float16_bits",     "F16",     "")              \
  ROW(kBFloat16,   BFLOAT16,    "bfloat16",    2, kFloat,    Ieee(7, 8),   "bfloat16_bits",    "BF16",    "bfloat16")      \
  ROW(kFloat32,    FLOAT32,     "float32",     4, kFloat,    Ieee(23, 8),  "float",            "F32",     "")              \
  ROW(kFloat64,    FLOAT64,     "float64",     8, kFloat,    Ieee(52, 11), "double",           "F64",     "")              \
  ROW(kFloat8E4M3, FLOAT8_E4M3, "float8_e4m3", 1, kFloat,    Finite(3, 4), "float8_e4m3_bits", "F8_E4M3", "float8_e4m3fn") \
  ROW(kFloat8E5M2, FLOAT8_E5M2, "float8_e5m2", 1, kFloat,    Ieee(2, 5),   "float8_e5m2_bits", "F8_E5M2", "float8_e5m2")
// clang-format on

#endif  // KILN_COMPILER_IR_DTYPE_TABLE_H_

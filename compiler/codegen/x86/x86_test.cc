#include "compiler/codegen/x86/x86.h"

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

using ::testing::HasSubstr;

drivers::Target Host() {
  drivers::Target target;
  target.architecture = "x86-64";
  target.processor = "x86-64";
  return target;
}

// A module under construction, with one function "f"(ptr) -> void.
struct ModuleBuilder {
  llvm::LLVMContext context;
  llvm::Module module{"test", context};
  llvm::IRBuilder<> ir{context};
  llvm::Function* function;

  ModuleBuilder() {
    auto* type = llvm::FunctionType::get(ir.getVoidTy(), {ir.getPtrTy()}, false);
    function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    ir.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  }
  llvm::Value* argument() { return function->getArg(0); }
};

void Call(const Blob& blob, void* argument) {
  void* memory =
      mmap(nullptr, blob.code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(memory, blob.code.data(), blob.code.size());
  ASSERT_EQ(mprotect(memory, blob.code.size(), PROT_READ | PROT_EXEC), 0);
  reinterpret_cast<void (*)(void*)>(static_cast<char*>(memory) + blob.entry)(argument);
  munmap(memory, blob.code.size());
}

// *argument = *argument * 3.25 + {1, 2, 3, 4}: needs a constant pool.
void BuildVector(ModuleBuilder& b) {
  auto* type = llvm::FixedVectorType::get(b.ir.getFloatTy(), 4);
  std::vector<float> offsets = {1, 2, 3, 4};
  auto* x = b.ir.CreateLoad(type, b.argument());
  auto* y =
      b.ir.CreateFAdd(b.ir.CreateFMul(x, llvm::ConstantFP::get(type, 3.25)),
                      llvm::ConstantDataVector::get(b.context, llvm::ArrayRef<float>(offsets)));
  b.ir.CreateStore(y, b.argument());
  b.ir.CreateRetVoid();
}

TEST(X86Test, RelocatesConstants) {
  ModuleBuilder b;
  BuildVector(b);
  auto blob = EmitBlob(b.module, Host(), "f");
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_GT(blob->entry, 0);
  EXPECT_EQ(blob->entry % 64, 0);
  float data[4] = {1, 10, 100, 1000};
  Call(*blob, data);
  EXPECT_THAT(data, testing::ElementsAre(4.25f, 34.5f, 328.0f, 3254.0f));
}

TEST(X86Test, RelocatesJumpTables) {
  ModuleBuilder b;
  auto* x = b.ir.CreateLoad(b.ir.getInt32Ty(), b.argument());
  auto* done = llvm::BasicBlock::Create(b.context, "done", b.function);
  auto* dispatch = b.ir.CreateSwitch(x, done);
  for (int i = 0; i < 12; ++i) {
    auto* block = llvm::BasicBlock::Create(b.context, "case", b.function);
    dispatch->addCase(b.ir.getInt32(i), block);
    llvm::IRBuilder<> in(block);
    in.CreateStore(in.getInt32(1000 + i * i * i), b.argument(), /*isVolatile=*/i % 2 == 0);
    in.CreateBr(done);
  }
  b.ir.SetInsertPoint(done);
  b.ir.CreateRetVoid();
  auto blob = EmitBlob(b.module, Host(), "f");
  ASSERT_TRUE(blob.ok()) << blob.status();
  for (int i = 0; i < 12; ++i) {
    int32_t value = i;
    Call(*blob, &value);
    EXPECT_EQ(value, 1000 + i * i * i);
  }
}

TEST(X86Test, CallsHelpersOfTheModule) {
  ModuleBuilder b;
  auto* type = llvm::FunctionType::get(b.ir.getInt64Ty(), {b.ir.getInt64Ty()}, false);
  auto* helper = llvm::Function::Create(type, llvm::Function::InternalLinkage, "helper", b.module);
  llvm::IRBuilder<> in(llvm::BasicBlock::Create(b.context, "entry", helper));
  in.CreateRet(in.CreateMul(helper->getArg(0), in.getInt64(7)));
  b.ir.CreateStore(b.ir.CreateCall(helper, {b.ir.CreateLoad(b.ir.getInt64Ty(), b.argument())}),
                   b.argument());
  b.ir.CreateRetVoid();
  auto blob = EmitBlob(b.module, Host(), "f");
  ASSERT_TRUE(blob.ok()) << blob.status();
  int64_t value = 6;
  Call(*blob, &value);
  EXPECT_EQ(value, 42);
}

TEST(X86Test, UsesFullWidthRegisters) {
  ModuleBuilder b;
  auto* type = llvm::FixedVectorType::get(b.ir.getFloatTy(), 16);
  auto* x = b.ir.CreateLoad(type, b.argument());
  b.ir.CreateStore(b.ir.CreateFAdd(x, x), b.argument());
  b.ir.CreateRetVoid();
  drivers::Target target = Host();
  target.processor = "x86-64-v4";
  auto blob = EmitBlob(b.module, target, "f");
  ASSERT_TRUE(blob.ok()) << blob.status();
  auto text = Disassemble(blob->code, blob->entry, target);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("zmm0"));
  EXPECT_THAT(*text, testing::Not(HasSubstr("ymm")));
}

TEST(X86Test, NamesExternalSymbols) {
  ModuleBuilder b;
  auto* type = llvm::FixedVectorType::get(b.ir.getFloatTy(), 4);
  auto* x = b.ir.CreateLoad(type, b.argument());
  b.ir.CreateStore(b.ir.CreateUnaryIntrinsic(llvm::Intrinsic::exp2, x), b.argument());
  b.ir.CreateRetVoid();
  auto blob = EmitBlob(b.module, Host(), "f");
  EXPECT_EQ(blob.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(blob.status().message(), HasSubstr("\"exp2f\""));
}

TEST(X86Test, RejectsWritableData) {
  ModuleBuilder b;
  auto* global =
      new llvm::GlobalVariable(b.module, b.ir.getInt32Ty(), false,
                               llvm::GlobalValue::InternalLinkage, b.ir.getInt32(5), "counter");
  b.ir.CreateStore(b.ir.getInt32(1), global, true);
  b.ir.CreateRetVoid();
  auto blob = EmitBlob(b.module, Host(), "f");
  EXPECT_EQ(blob.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(blob.status().message(), HasSubstr("not constant data"));
}

TEST(X86Test, NamesAMissingFunction) {
  ModuleBuilder b;
  b.ir.CreateRetVoid();
  EXPECT_THAT(EmitBlob(b.module, Host(), "g").status().message(), HasSubstr("\"g\""));
}

TEST(X86Test, RejectsInvalidModules) {
  ModuleBuilder b;  // its block has no terminator
  EXPECT_THAT(EmitBlob(b.module, Host(), "f").status().message(), HasSubstr("terminator"));
}

TEST(X86Test, RejectsOtherArchitectures) {
  ModuleBuilder b;
  b.ir.CreateRetVoid();
  drivers::Target target = Host();
  target.architecture = "nvptx";
  EXPECT_EQ(EmitBlob(b.module, target, "f").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(X86Test, DisassemblyHasLabelsAndConstants) {
  ModuleBuilder b;
  BuildVector(b);
  auto blob = EmitBlob(b.module, Host(), "f");
  ASSERT_TRUE(blob.ok()) << blob.status();
  auto text = Disassemble(blob->code, blob->entry, Host());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("; constants:"));
  EXPECT_THAT(*text, HasSubstr("; constant at 0"));
  EXPECT_THAT(*text, HasSubstr("ret"));

  ModuleBuilder loop;
  auto* body = llvm::BasicBlock::Create(loop.context, "body", loop.function);
  auto* end = llvm::BasicBlock::Create(loop.context, "end", loop.function);
  loop.ir.CreateBr(body);
  loop.ir.SetInsertPoint(body);
  loop.ir.CreateCondBr(
      loop.ir.CreateICmpEQ(loop.ir.CreateLoad(loop.ir.getInt32Ty(), loop.argument(), true),
                           loop.ir.getInt32(0)),
      end, body);
  loop.ir.SetInsertPoint(end);
  loop.ir.CreateRetVoid();
  blob = EmitBlob(loop.module, Host(), "f");
  ASSERT_TRUE(blob.ok()) << blob.status();
  text = Disassemble(blob->code, blob->entry, Host());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("L0:\n"));
  EXPECT_THAT(*text, HasSubstr("jne L0"));
}

TEST(X86Test, ThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> code(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&code, t] {
      for (int i = 0; i < 5; ++i) {
        ModuleBuilder b;
        BuildVector(b);
        auto blob = EmitBlob(b.module, Host(), "f");
        if (blob.ok()) code[t] = blob->code;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(code[0].empty());
  for (const std::string& other : code) EXPECT_EQ(other, code[0]);  // deterministic
}

}  // namespace
}  // namespace kiln::codegen

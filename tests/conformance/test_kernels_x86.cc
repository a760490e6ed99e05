#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "compiler/codegen/x86.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {
namespace {

using llvm::Value;

// What a kernel's body sees at one grid point.
struct Point {
  llvm::IRBuilder<>& b;
  llvm::Function* function;
  Value* index;

  // Element `i` of argument number `argument`.
  Value* Address(int argument, llvm::Type* type, Value* i) {
    Value* slot = b.CreateConstGEP1_64(b.getPtrTy(), function->getArg(0), argument);
    return b.CreateGEP(type, b.CreateLoad(b.getPtrTy(), slot), {i});
  }
  Value* scratch() { return function->getArg(3); }
};

using Body = std::function<void(Point&)>;

// for (i = begin; i < end; ++i) body(i). `before` stays the loop's head whatever blocks the body
// adds.
void Loop(llvm::IRBuilder<>& b, llvm::Function* function, Value* begin, Value* end,
          const std::function<void(Value*)>& body) {
  auto* before = b.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "loop", function);
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "body", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "end", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  b.CreateCondBr(b.CreateICmpSLT(i, end), inside, after);
  b.SetInsertPoint(inside);
  body(i);
  i->addIncoming(b.CreateAdd(i, b.getInt64(1)), b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
}

drivers::KernelImage Make(const drivers::Target& target, const std::string& name, int arguments,
                          int64_t grid, const Body& body) {
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty(), b.getPtrTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  Loop(b, function, function->getArg(1), function->getArg(2), [&](Value* i) {
    Point point{b, function, i};
    body(point);
  });
  b.CreateRetVoid();
  auto blob = codegen::EmitBlob(module, target, name);
  if (!blob.ok()) {
    fprintf(stderr, "cannot compile the test kernel %s: %s\n", name.c_str(),
            blob.status().ToString().c_str());
    abort();
  }
  drivers::KernelImage image;
  image.name = name;
  image.architecture = target.architecture;
  image.code = blob->code;
  image.entry = blob->entry;
  image.grid_size = grid;
  image.num_arguments = arguments;
  return image;
}

// `new_value` of the uint32 in value[0].
void Update(Point& p, const std::function<Value*(Value*)>& new_value) {
  Value* address = p.Address(0, p.b.getInt32Ty(), p.b.getInt64(0));
  p.b.CreateStore(new_value(p.b.CreateLoad(p.b.getInt32Ty(), address)), address);
}

void SlowBody(Point& p) {
  Loop(p.b, p.function, p.b.getInt64(0), p.b.getInt64(3000000),
       [&](Value* i) { p.b.CreateStore(i, p.scratch(), /*isVolatile=*/true); });
  Update(p, [&](Value* v) {
    return p.b.CreateAdd(p.b.CreateMul(v, p.b.getInt32(2)), p.b.getInt32(1));
  });
}

void ScratchBody(Point& p) {
  p.b.CreateStore(p.index, p.scratch(), /*isVolatile=*/true);
  Loop(p.b, p.function, p.b.getInt64(1), p.b.getInt64(64), [&](Value* i) {
    p.b.CreateStore(i, p.b.CreateGEP(p.b.getInt64Ty(), p.scratch(), {i}), /*isVolatile=*/true);
  });
  Value* index = p.b.CreateLoad(p.b.getInt64Ty(), p.scratch(), /*isVolatile=*/true);
  p.b.CreateStore(p.b.CreateTrunc(index, p.b.getInt32Ty()),
                  p.Address(0, p.b.getInt32Ty(), p.index));
}

}  // namespace

TestKernels MakeX86Kernels(const drivers::Target& target) {
  TestKernels kernels;
  kernels.ramp = Make(target, "ramp", 1, kGrid, [](Point& p) {
    Value* value = p.b.CreateAdd(p.b.CreateMul(p.index, p.b.getInt64(3)), p.b.getInt64(1));
    p.b.CreateStore(p.b.CreateTrunc(value, p.b.getInt32Ty()),
                    p.Address(0, p.b.getInt32Ty(), p.index));
  });
  kernels.saxpy = Make(target, "saxpy", 3, kGrid, [](Point& p) {
    llvm::Type* type = p.b.getFloatTy();
    Value* x = p.b.CreateLoad(type, p.Address(0, type, p.index));
    Value* y = p.b.CreateLoad(type, p.Address(1, type, p.index));
    Value* sum = p.b.CreateFAdd(p.b.CreateFMul(x, llvm::ConstantFP::get(type, 2)), y);
    p.b.CreateStore(sum, p.Address(2, type, p.index));
  });
  kernels.count = Make(target, "count", 1, kGrid, [](Point& p) {
    Value* address = p.Address(0, p.b.getInt32Ty(), p.index);
    Value* value = p.b.CreateLoad(p.b.getInt32Ty(), address);
    p.b.CreateStore(p.b.CreateAdd(value, p.b.getInt32(1)), address);
  });
  kernels.scratch = Make(target, "scratch", 1, kGrid, ScratchBody);
  kernels.scratch.scratch_bytes = 64 * 8;
  kernels.step = Make(target, "step", 1, 1, [](Point& p) {
    Update(p, [&](Value* v) {
      return p.b.CreateAdd(p.b.CreateMul(v, p.b.getInt32(5)), p.b.getInt32(7));
    });
  });
  kernels.slow = Make(target, "slow", 1, 1, SlowBody);
  kernels.slow.scratch_bytes = 64;
  for (drivers::KernelImage* image :
       {&kernels.ramp, &kernels.saxpy, &kernels.count, &kernels.scratch}) {
    image->flops = int64_t{1} << 30;
  }
  return kernels;
}

}  // namespace kiln::conformance

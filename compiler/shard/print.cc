#include "absl/strings/str_join.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/shard/program.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

std::string_view NameOf(Buffer::Kind kind) {
  switch (kind) {
    case Buffer::Kind::kInput:
      return "input";
    case Buffer::Kind::kPlace:
      return "place";
    case Buffer::Kind::kOutput:
      return "output";
    case Buffer::Kind::kUpdate:
      return "update";
    case Buffer::Kind::kOwn:
      return "own";
    case Buffer::Kind::kPublished:
      return "published";
  }
  return "";
}

std::string BufferText(const Buffer& buffer) {
  const bool is_placed =
      buffer.kind == Buffer::Kind::kOwn || buffer.kind == Buffer::Kind::kPublished;
  return StrCat(NameOf(buffer.kind), is_placed ? " at " : " ",
                is_placed ? buffer.offset : buffer.index);
}

std::string DeviceText(const Segment& segment) {
  return segment.device == kEach ? "" : StrCat(" on ", segment.device);
}

std::string GroupText(const Program& program, int group) {
  return absl::StrJoin(program.groups[group], "+", [&](std::string* text, int axis) {
    text->append(program.mesh.axes[axis].name);
  });
}

std::string AccessText(const Program& program, const Access& access) {
  std::string text = BufferText(program.buffers[access.buffer]);
  if (access.member >= 0) {
    StrAppend(&text, " of ", access.member, " in ", GroupText(program, access.group));
  }
  if (access.stride > 0) StrAppend(&text, ", part of ", access.bytes, " bytes");
  return text;
}

absl::Status Wrong(std::string_view a, std::string_view b = "") {
  return absl::InternalError(StrCat("illegal sharded program: ", a, b));
}

absl::Status CheckAccess(const Program& program, const Access& access, int64_t bytes) {
  const Buffer& buffer = program.buffers[access.buffer];
  if (access.bytes != bytes) {
    return Wrong("an access of another size than its tensor's: ", AccessText(program, access));
  }
  int64_t last = 0;
  if (access.member >= 0) {
    if (buffer.kind != Buffer::Kind::kPublished) {
      return Wrong("others read what is not published: ", AccessText(program, access));
    }
    for (const int axis : program.groups[access.group]) {
      last = (last + 1) * program.mesh.axes[axis].size - 1;
    }
  }
  if (access.offset + last * access.stride + access.bytes > buffer.bytes) {
    return Wrong("an access beyond its buffer: ", AccessText(program, access));
  }
  return absl::OkStatus();
}

absl::Status CheckSegment(const Program& program, int number) {
  const Segment& segment = program.segments[number];
  const auto alive = [&](const Access& access) {
    const Buffer& buffer = program.buffers[access.buffer];
    if (access.member < 0 && buffer.device != segment.device) return false;
    const bool is_placed =
        buffer.kind == Buffer::Kind::kOwn || buffer.kind == Buffer::Kind::kPublished;
    return !is_placed || (buffer.first <= number && number <= buffer.last);
  };
  for (const Fetch& fetch : segment.fetches) {
    for (const Access& access : {fetch.source, fetch.destination}) {
      absl::Status fits = CheckAccess(program, access, fetch.source.bytes);
      if (!fits.ok()) return fits;
      if (!alive(access)) return Wrong("a dead buffer is fetched: ", AccessText(program, access));
    }
  }
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    const graph::Input& input = segment.graph.inputs[i];
    absl::Status fits =
        CheckAccess(program, segment.inputs[i], ir::BytesOf(input.dtype, input.shape));
    if (!fits.ok()) return fits;
    if (!alive(segment.inputs[i])) {
      return Wrong("a dead buffer is read: ", AccessText(program, segment.inputs[i]));
    }
  }
  for (size_t i = 0; i < segment.results.size(); ++i) {
    const ir::Node* node = segment.graph.outputs[i];
    absl::Status fits = CheckAccess(program, segment.results[i], ir::BytesOf(node));
    if (!fits.ok()) return fits;
    if (!alive(segment.results[i])) {
      return Wrong("a dead buffer is written: ", AccessText(program, segment.results[i]));
    }
  }
  return graph::Verify(segment.graph);
}

absl::Status CheckPlaces(const Program& program) {
  for (const Buffer& a : program.buffers) {
    for (const Buffer& b : program.buffers) {
      if (&a >= &b || a.kind != b.kind || a.device != b.device) continue;
      if (a.kind != Buffer::Kind::kOwn && a.kind != Buffer::Kind::kPublished) continue;
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (together && overlap) return Wrong("buffers overlap: ", BufferText(a));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Print(const Program& program) {
  std::string text = "mesh";
  for (const graph::Mesh::Axis& axis : program.mesh.axes) {
    StrAppend(&text, " ", axis.name, "=", axis.size);
  }
  StrAppend(&text, "\n", program.layouts, "own ", program.own_bytes, " bytes, published ",
            program.published_bytes, " bytes\n");
  const auto segments = static_cast<int>(program.segments.size());
  for (int i = 0; i <= segments; ++i) {
    if (i < segments) StrAppend(&text, "segment ", i, DeviceText(program.segments[i]), "\n");
    for (const Meeting& meeting : program.meetings) {
      if (meeting.segment != i) continue;
      StrAppend(&text, i < segments ? "  " : "at the end ", "meet ",
                GroupText(program, meeting.group), "\n");
    }
    for (const Transfer& transfer : program.transfers) {
      if (transfer.segment != i) continue;
      StrAppend(&text, "  ", transfer.name, " ", GroupText(program, transfer.group), " ",
                transfer.what, ": reads ", transfer.bytes, " bytes\n");
    }
    if (i == segments) break;
    const Segment& segment = program.segments[i];
    for (const Fetch& fetch : segment.fetches) {
      StrAppend(&text, "  fetch ", AccessText(program, fetch.source), " to ",
                AccessText(program, fetch.destination), " from byte ", fetch.destination.offset,
                "\n");
    }
    for (size_t k = 0; k < segment.inputs.size(); ++k) {
      StrAppend(&text, "  input ", k, ": ", AccessText(program, segment.inputs[k]), "\n");
    }
    for (size_t k = 0; k < segment.results.size(); ++k) {
      StrAppend(&text, "  output ", k, ": ", AccessText(program, segment.results[k]), "\n");
    }
  }
  for (const Copy& copy : program.copies) {
    StrAppend(&text, "copy ", BufferText(program.buffers[copy.source]), " to ",
              BufferText(program.buffers[copy.destination]), "\n");
  }
  return text;
}

void Program::Validate() const {
  // By buffer: how often it is written as a whole, and the bytes fetched to it, in order.
  std::vector<int> writers(buffers.size(), 0);
  std::vector<int64_t> fetched(buffers.size(), 0);
  for (const Segment& segment : segments) {
    KILN_CHECK_EQ(segment.inputs.size(), segment.graph.inputs.size());
    KILN_CHECK_EQ(segment.results.size(),
                  segment.graph.outputs.size() + segment.graph.updates.size());
    for (const Access& result : segment.results) {
      KILN_CHECK_LT(result.buffer, buffers.size());
      ++writers[result.buffer];
    }
    for (const auto& [source, destination] : segment.fetches) {
      KILN_CHECK_EQ(source.bytes, destination.bytes);
      // The pieces follow one another, so that they cover the buffer exactly.
      KILN_CHECK_EQ(destination.offset, fetched[destination.buffer]);
      fetched[destination.buffer] += destination.bytes;
    }
  }
  for (const Copy& copy : copies) {
    KILN_CHECK_NE(copy.source, copy.destination);
    ++writers[copy.destination];
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    const bool is_given =
        buffer.kind == Buffer::Kind::kInput || buffer.kind == Buffer::Kind::kPlace;
    if (fetched[i] > 0) KILN_CHECK_EQ(fetched[i], buffer.bytes) << BufferText(buffer);
    const int written = writers[i] + (fetched[i] > 0 ? 1 : 0);
    // Buffers without bytes are not fetched.
    KILN_CHECK(written == (is_given ? 0 : 1) || (written == 0 && buffer.bytes == 0))
        << BufferText(buffer) << " is written " << written << " times";
    KILN_CHECK_LE(buffer.first, buffer.last) << BufferText(buffer);
  }
  for (size_t i = 0; i < meetings.size(); ++i) {
    KILN_CHECK_LT(meetings[i].group, groups.size());
    KILN_CHECK(i == 0 || meetings[i - 1].segment <= meetings[i].segment) << "meeting " << i;
  }
}

absl::Status Verify(const Program& program) {
  for (int i = 0; i < static_cast<int>(program.segments.size()); ++i) {
    if (absl::Status legal = CheckSegment(program, i); !legal.ok()) return legal;
  }
  return CheckPlaces(program);
}

}  // namespace kiln::shard

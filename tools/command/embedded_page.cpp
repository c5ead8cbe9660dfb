#include "tools/command/embedded_page.hpp"

// The assembler includes the file, because a compiler takes many seconds for the same bytes as an array.
#define RINGLET_TEXT_OF(x) #x
#define RINGLET_TEXT(x) RINGLET_TEXT_OF(x)
#define RINGLET_SYMBOL(name) RINGLET_TEXT(__USER_LABEL_PREFIX__) name
__asm__(".data\n.balign 16\n.globl " RINGLET_SYMBOL("ringlet_page_begin") "\n" RINGLET_SYMBOL(
    "ringlet_page_begin") ":\n.incbin \"" RINGLET_PAGE_FILE
                          "\"\n.globl " RINGLET_SYMBOL("ringlet_page_end") "\n" RINGLET_SYMBOL("ringlet_page_end") ":\n.byte 0\n.text\n");

extern "C" {
extern const std::byte ringlet_page_begin[];
extern const std::byte ringlet_page_end[];
}

namespace ringlet::command {

std::span<const std::byte> embedded_page() { return {ringlet_page_begin, static_cast<std::size_t>(ringlet_page_end - ringlet_page_begin)}; }

}  // namespace ringlet::command

/** Any character of Unicode, for properties: it takes seconds to make what fast-check calls the unit `binary`. */
import fc from 'fast-check';

export const anyCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((point) => String.fromCodePoint(point));

/** What a text or a name can hold that a reader of XML may lose. */

const EVERYTHING = '&<>"\' ]]> &amp; &#13; <![CDATA[x]]> <content/> é ž € \u{1F600} \u{10FFFD}';

/** Each is shorter than 1,024 bytes. */
export const HOSTILE_TEXTS: readonly string[] = [
  '\n',
  '\n\n a leading newline',
  'a trailing newline\n\n',
  ' ',
  '\t blanks and tabs at both ends \t ',
  'CRLF\r\nlone CR\rLF\nCR at the end\r',
  '\r\n',
  EVERYTHING,
  '<?xml version="1.0"?><!-- no comment --><a b="c">d</a>',
  '\uFEFFa byte-order mark, \uFFFD, \u00A0, \u0085, \u2028, \u007F',
  'e\u0301 is not \u00E9: \u1E9B\u0323',
  '0',
  'nil',
];

/** Names as a hostile or careless job makes them; XML can hold them all. */
export const HOSTILE_NAMES: readonly string[] = [
  '/701/plain.txt',
  '/701/a directory/výsledek č. 1 \u{1F600}.bin',
  '/701/&<>"\'&amp;&#10;]]>.bin',
  '/701/ blanks at both ends ',
  '/701/trailing newline\n',
  '/701/a\nb\rc\r\nd\te',
  '/701/$(reboot);`x`|*?\\',
  '/701/-rf',
  '/701/<![CDATA[x]]>',
  '/701/e\u0301\u202Etxt.exe',
];

/** Names that are no paths of files. */
export const IMPOSSIBLE_NAMES: readonly string[] = [
  '',
  ' ',
  '\n',
  '/',
  ' /701/x',
  '../../etc/passwd',
  '/701/../../etc/shadow',
  '701///x',
  '701/x',
  'C:\\Windows\\x',
  '/701\\x',
];

/** So many bytes; each byte value stands among the first 256. */
export function allBytes(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let index = 0; index < length; index++) bytes[index] = index * 31 + (index >> 8);
  return bytes;
}

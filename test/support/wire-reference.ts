/** A parse of the whole document by somebody else: what the reader must agree with. */
import sax from 'sax';

/** The texts of all `localName` elements; undefined if the document is no XML. */
export function textsOf(document: string, localName: string): string[] | undefined {
  const parser = sax.parser(true);
  const texts: string[] = [];
  const open: { local: string; text: string }[] = [];
  parser.onerror = (error) => {
    throw error;
  };
  parser.onopentag = ({ name }) => open.push({ local: name.slice(name.indexOf(':') + 1), text: '' });
  const onText = (text: string) => {
    const inner = open.at(-1);
    if (inner !== undefined) inner.text += text;
  };
  parser.ontext = onText;
  parser.oncdata = onText;
  parser.onclosetag = () => {
    const closed = open.pop();
    if (closed?.local === localName) texts.push(closed.text);
  };
  try {
    parser.write(acceptable(document)).close();
  } catch {
    return undefined;
  }
  return texts;
}

/** sax refuses references to control characters, but takes the characters themselves. Not inside CDATA and the like. */
function acceptable(document: string): string {
  return document.replace(
    /<!\[CDATA\[[\s\S]*?\]\]>|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|&#(?:x([0-9a-fA-F]+)|([0-9]+));/g,
    (found, hex, decimal) => {
      if (!found.startsWith('&')) return found;
      const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      const isControl = (point < 0x20 && ![9, 10, 13].includes(point)) || point === 0xfffe || point === 0xffff;
      return isControl ? String.fromCodePoint(point) : found;
    },
  );
}

/** Reads YAML text into plain values, with the position of each. */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type YAMLError,
} from 'yaml';

interface Position {
  readonly line: number;
  readonly column: number;
}

export interface PlacedProblem {
  readonly position: Position;
  readonly text: string;
}

export interface YamlText {
  /** Whole numbers beyond 2^53 are bigint, so that 64-bit ids are exact. Undefined after syntax errors. */
  readonly value: unknown;
  readonly problems: readonly PlacedProblem[];
  /** The position of the value at `path` or of its key; for a missing one, of the nearest value around it. */
  positionOf(path: readonly PropertyKey[], of: 'key' | 'value'): Position;
}

/** Never throws: errors are in `problems`. */
export function readYaml(text: string): YamlText {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    intAsBigInt: true,
    stringKeys: true,
    prettyErrors: false,
    lineCounter: lines,
  });
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const positionOf = (path: readonly PropertyKey[], of: 'key' | 'value') => positionAt(offsetOf(document, path, of));

  const wrong = [...document.errors, ...document.warnings];
  const problems = wrong.map((error) => ({ position: positionAt(error.pos[0]), text: textOf(error, text) }));
  if (problems.length > 0) return { value: undefined, problems, positionOf };
  try {
    return { value: document.toJS({ reviver: (_, found: unknown) => exactNumber(found) }), problems, positionOf };
  } catch {
    // Endlessly multiplying aliases, or aliases of an anchor around themselves.
    const position = { line: 1, column: 1 };
    return { value: undefined, problems: [{ position, text: 'its aliases (*name) cannot be resolved' }], positionOf };
  }
}

const exactNumber = (found: unknown) =>
  typeof found === 'bigint' && Number.isSafeInteger(Number(found)) ? Number(found) : found;

function offsetOf(document: Document, path: readonly PropertyKey[], of: 'key' | 'value'): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [index, step] of path.entries()) {
    const around: unknown = isAlias(node) ? node.resolve(document) : node;
    const pair = isMap(around)
      ? around.items.find(({ key }) => isScalar(key) && String(key.value) === step)
      : undefined;
    node = isSeq(around) ? around.items[Number(step)] : pair?.value;
    const wanted = of === 'key' && index === path.length - 1 ? pair?.key : node;
    const start = startOf(wanted) ?? startOf(pair?.key);
    if (start === undefined) break;
    offset = start;
  }
  return offset;
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);

const UNKNOWN_ALIAS = 'an alias or anchor that is not known (a text that begins with * or & must stand in quotes)';
const NO_KEY_HERE = 'a key with its value cannot begin here; a text with ": " in it must stand in quotes';

const TEXTS: Readonly<Record<string, string>> = {
  BAD_INDENT: 'wrong indentation, or a bracket before it that is not closed',
  TAB_AS_INDENT: 'a tab stands in the indentation; YAML takes spaces only',
  MISSING_CHAR: 'a character is missing here: a closing quote, a comma, a bracket, a colon or the blank after it',
  BAD_SCALAR_START: 'a text that begins with this character must stand in quotes',
  BAD_DQ_ESCAPE: "an unknown escape in double quotes; single quotes ('...') take a backslash as it is",
  BLOCK_AS_IMPLICIT_KEY: NO_KEY_HERE,
  MULTILINE_IMPLICIT_KEY: NO_KEY_HERE,
  MULTIPLE_DOCS: 'a second document begins here (---); the configuration is one',
  TAG_RESOLVE_FAILED: 'an unknown tag (a word that begins with !)',
  BAD_ALIAS: UNKNOWN_ALIAS,
  ALIAS_PROPS: UNKNOWN_ALIAS,
  NON_STRING_KEY: 'a key must be a plain word',
};

/** Messages of the library may quote the text, which may be a secret: so only the name of a repeated key is quoted. */
function textOf({ code, pos }: YAMLError, text: string): string {
  if (code !== 'DUPLICATE_KEY') return TEXTS[code] ?? `this is no YAML (${code})`;
  const key = /^["']?([A-Za-z_][A-Za-z0-9_-]*)["']?\s*:/.exec(text.slice(pos[0]))?.[1] ?? 'a key';
  return `${key}: expected every key once in its section, found it a second time`;
}

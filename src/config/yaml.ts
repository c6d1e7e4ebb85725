/** Reads YAML text into plain values, with the position of each. */
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLError } from 'yaml';

interface Position {
  readonly line: number;
  readonly column: number;
}

export interface PlacedProblem {
  readonly position: Position;
  readonly text: string;
}

interface YamlText {
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
  const resolved = (node: unknown): unknown => (isAlias(node) ? node.resolve(document) : node);
  const positionOf = (path: readonly PropertyKey[], of: 'key' | 'value') =>
    positionAt(offsetOf(document.contents, path, { of, resolved }));

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

interface Walk {
  readonly of: 'key' | 'value';
  readonly resolved: (node: unknown) => unknown;
}

function offsetOf(root: unknown, path: readonly PropertyKey[], { of, resolved }: Walk): number {
  let node = root;
  let offset = startOf(node) ?? 0;
  for (const [index, step] of path.entries()) {
    const around = resolved(node);
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

const startOf = (node: unknown): number | undefined => (isNode(node) ? (node as Node).range?.[0] : undefined);

/** Messages of the library may quote the text, which may be a secret: so only the name of a repeated key is quoted. */
function textOf(error: YAMLError, text: string): string {
  switch (error.code) {
    case 'DUPLICATE_KEY': {
      const key = /^["']?([A-Za-z_][A-Za-z0-9_-]*)["']?\s*:/.exec(text.slice(error.pos[0]))?.[1] ?? 'a key';
      return `${key}: expected every key once in its section, found it a second time`;
    }
    case 'BAD_INDENT':
      return 'wrong indentation, or a bracket before it that is not closed';
    case 'TAB_AS_INDENT':
      return 'a tab stands in the indentation; YAML takes spaces only';
    case 'MISSING_CHAR':
      return 'a character is missing here: a closing quote, a comma, a bracket, a colon or the blank after it';
    case 'BAD_SCALAR_START':
      return 'a text that begins with this character must stand in quotes';
    case 'BAD_DQ_ESCAPE':
      return "an unknown escape in double quotes; single quotes ('...') take a backslash as it is";
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'a key with its value cannot begin here; a text with ": " in it must stand in quotes';
    case 'MULTIPLE_DOCS':
      return 'a second document begins here (---); the configuration is one';
    case 'TAG_RESOLVE_FAILED':
      return 'an unknown tag (a word that begins with !)';
    case 'BAD_ALIAS':
    case 'ALIAS_PROPS':
      return 'an alias or anchor that is not known (a text that begins with * or & must stand in quotes)';
    case 'NON_STRING_KEY':
      return 'a key must be a plain word';
    default:
      return `this is no YAML (${error.code})`;
  }
}

/**
 * What a value from outside must be: reads one, and reports at once all that is wrong in it. Each command reads the
 * configuration, and a package for this took a third of its start.
 */

export interface Issue {
  /** From the value that was read. */
  readonly path: readonly PropertyKey[];
  readonly expected: string;
  /** What is found there, if the value does not show it. */
  readonly found?: unknown;
  /** Of an unknown key, which ends the path: the known keys. */
  readonly known?: readonly string[];
}

type Parts = Readonly<Record<string, Type<unknown>>>;

export type Output<Of> = Of extends Type<infer Value> ? Value : never;

export class Type<Value> {
  /** Returns the value, as far as it is valid, and adds an issue for each part that is not. */
  readonly read: (found: unknown, issues: Issue[]) => Value;
  /** Of a section its keys, of a list `[]`. */
  readonly parts: Parts;

  constructor(read: (found: unknown, issues: Issue[]) => Value, parts: Parts = {}) {
    this.read = read;
    this.parts = parts;
  }

  /** Undefined for a value that is not valid. */
  valid(found: unknown): Value | undefined {
    const issues: Issue[] = [];
    const value = this.read(found, issues);
    return issues.length === 0 ? value : undefined;
  }

  /** Changes a valid value; it may add issues. */
  transform<Other>(change: (value: Value, issues: Issue[]) => Other): Type<Other> {
    return this.#with((found, issues) => {
      const before = issues.length;
      const value = this.read(found, issues);
      return issues.length > before ? (value as unknown as Other) : change(value, issues);
    });
  }

  /** Accepts fewer values. */
  refine(isFine: (value: Value) => boolean, expected = ''): Type<Value> {
    return this.transform((value, issues) => {
      if (!isFine(value)) issues.push({ path: [], expected });
      return value;
    });
  }

  /** Reads `value` in place of a missing one. */
  prefault(value: unknown): Type<Value> {
    return this.#with((found, issues) => this.read(found === undefined ? value : found, issues));
  }

  optional(): Type<Value | undefined> {
    return this.#with((found, issues) => (found === undefined ? undefined : this.read(found, issues)));
  }

  nullable(): Type<Value | null> {
    return this.#with((found, issues) => (found === null ? null : this.read(found, issues)));
  }

  /** Prepares what is found. */
  after(prepare: (found: unknown) => unknown): Type<Value> {
    return this.#with((found, issues) => this.read(prepare(found), issues));
  }

  #with<Other>(read: (found: unknown, issues: Issue[]) => Other): Type<Other> {
    return new Type(read, this.parts);
  }
}

/** Accepts the values for which `is` returns true. */
export function typeOf<Value>(is: (found: unknown) => found is Value, expected = ''): Type<Value> {
  return new Type((found, issues) => {
    if (!is(found)) issues.push({ path: [], expected });
    return found as Value;
  });
}

export const isString = (found: unknown): found is string => typeof found === 'string';
export const isNotEmpty = ({ length }: { readonly length: number }) => length > 0;
export const isSection = (found: unknown): found is Readonly<Record<string, unknown>> =>
  typeof found === 'object' && found !== null && !Array.isArray(found);

export const oneOf = <const Values extends readonly string[]>(
  values: Values,
  expected = `one of ${values.join(', ')}`,
) => typeOf((found): found is Values[number] => values.includes(found as string), expected);

const A_SECTION = typeOf(isSection, 'a section (keys with their values)');

/** The values of these keys; others are left out. */
export function objectOf<Shape extends Parts>(shape: Shape) {
  const read = (found: Readonly<Record<string, unknown>>, issues: Issue[]) => {
    const values = Object.entries(shape).map(([key, type]) => [key, readPart(type, key, found[key], issues)] as const);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as {
      [Key in keyof Shape]: Output<Shape[Key]>;
    };
  };
  return new Type(A_SECTION.transform(read).read, shape);
}

/** A section with exactly these keys. */
export function section<Shape extends Parts>(shape: Shape) {
  const known = Object.keys(shape);
  const { read } = objectOf(shape);
  return new Type((found, issues) => {
    const keys = isSection(found) ? Object.keys(found) : [];
    const unknown = keys.filter((key) => !known.includes(key));
    issues.push(...unknown.map((key) => ({ path: [key], expected: '', known })));
    return read(found, issues);
  }, shape);
}

/** A list of such items. */
export function listOf<Item>(item: Type<Item>, what = ''): Type<Item[]> {
  const list = typeOf((found): found is unknown[] => Array.isArray(found), `a list of ${what}`);
  const read = (found: unknown[], issues: Issue[]) => found.map((one, at) => readPart(item, at, one, issues));
  return new Type(list.transform(read).read, { '[]': item });
}

function readPart<Value>(type: Type<Value>, key: PropertyKey, found: unknown, issues: Issue[]): Value {
  const own: Issue[] = [];
  const value = type.read(found, own);
  issues.push(...own.map((issue) => ({ ...issue, path: [key, ...issue.path] })));
  return value;
}

/** JSON values, with what JavaScript's own lose: numbers of 64 bits are exact, and a name is found whatever its case. */

export type Json = string | boolean | null | JsonNumber | LiftedText | JsonObject | readonly Json[];

/** A number as it was written. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The place of a text that was lifted out of the document. */
export class LiftedText {
  /** Counted from 0, over the whole document. */
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

export class JsonObject {
  readonly #members = new Map<string, readonly [name: string, value: Json]>();

  /** The value of a member, whatever the case of its name; undefined if there is none. */
  get(name: string): Json | undefined {
    return this.#members.get(name.toLowerCase())?.[1];
  }

  set(name: string, value: Json): void {
    this.#members.set(name.toLowerCase(), [name, value]);
  }

  /** Names as they were written, in their order. */
  get members(): readonly (readonly [name: string, value: Json])[] {
    return [...this.#members.values()];
  }
}

/** An object of these members, in their order; those that are undefined are left out. */
export function jsonObject(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const object = new JsonObject();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) object.set(name, value);
  return object;
}

/** The value as JSON, without a byte more than needed. */
export function writeJson(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (value instanceof LiftedText) return 'null';
  if (value instanceof JsonObject) {
    return `{${value.members.map(([name, inner]) => `${JSON.stringify(name)}:${writeJson(inner)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`;
  return JSON.stringify(value);
}

/** Types of configuration values. The message of each issue is what src/config/load.ts expects. */
import { isAbsolute, resolve } from 'node:path';
import * as v from 'valibot';

/** What is read as such a value. */
export type Type<Value> = v.GenericSchema<unknown, Value>;

const isSection = (found: unknown): found is Readonly<Record<string, unknown>> =>
  typeof found === 'object' && found !== null && !Array.isArray(found);

/** A section with exactly these keys; the message of an unknown one lists them. */
export const section = <Shape extends v.ObjectEntries>(shape: Shape) =>
  v.pipe(v.unknown(), v.check(isSection, A_SECTION), v.strictObject(shape, Object.keys(shape).join(', ')));
const A_SECTION = 'a section (keys with their values)';

/** Accepts fewer values. */
export const refine = <Value>(inner: Type<Value>, isFine: (value: Value) => boolean, expected: string) =>
  v.config(v.pipe(inner, v.check(isFine, expected)), { abortPipeEarly: true });

/** Changes a valid value. */
export const transform = <Found, Value>(inner: Type<Found>, change: (found: Found) => Value) =>
  v.pipe(inner, v.transform(change));

/** Converts a value; `read` returns undefined for an invalid one. */
const readAs = <Found, Value>(inner: Type<Found>, expected: string, read: (found: Found) => Value | undefined) =>
  v.pipe(inner, v.transform(read), v.custom<Value>(isGiven, expected));
const isGiven = (value: unknown) => value !== undefined;

/** A missing one gets its own message. */
export const required = <Value>(inner: Type<Value>) => v.optional(inner, null);

export const orNull = <Value>(inner: Type<Value>) => v.nullish(inner, null);

/** A section that may be missing, or empty because all its keys are commented out. */
export const orEmpty = <Value>(inner: Type<Value>) => v.nullish(inner, {});

/** Renames durations, which are milliseconds after parsing. */
export function inMs<Values extends object>(section: Values): InMs<Values> {
  const entries = Object.entries(section).map(([key, found]) => [
    key.replace(/(?:Seconds|Minutes|Days)$/, 'Ms'),
    found,
  ]);
  return Object.fromEntries(entries) as InMs<Values>;
}

type InMs<Values> = {
  [Key in keyof Values as Key extends `${infer Name}${'Seconds' | 'Minutes' | 'Days'}`
    ? `${Name}Ms`
    : Key]: Values[Key];
};

/** Reports what is expected at a path of the section, and what is found there if the value does not show it. */
export type ReportIssue = (expected: string, path?: readonly PropertyKey[], found?: unknown) => void;

/** A rule between keys. It gets the readable part, even after errors, so that all errors are reported at once. */
export function withRule<Keys>(inner: Type<Keys>, check: (keys: Partial<Keys>, report: ReportIssue) => void) {
  const rule = v.rawCheck<Keys>(({ dataset: { value }, addIssue }) => {
    if (typeof value === 'object' && value !== null) check(value, (...problem) => addIssue(issueOf(...problem)));
  });
  return v.pipe(inner, rule);
}

export function issueOf(...[message, path = [], input]: Parameters<ReportIssue>) {
  const items = path.map((key) => ({ type: 'unknown', origin: 'value', input, key, value: input }) as const);
  return { message, input, path: items as [v.UnknownPathItem] };
}

export function requireOne(keys: readonly string[], given: readonly string[], report: ReportIssue, what = ''): void {
  if (given.length === 1) return;
  report(`exactly one of ${keys.join(', ')}${what}`, [], given.length === 0 ? 'none of them' : given.join(' and '));
}

export const isNotEmpty = ({ length }: { readonly length: number }) => length > 0;

export const wholeNumber = (min: number, max: number, expected = `a whole number from ${min} to ${max}`) =>
  v.pipe(v.number(expected), v.safeInteger(expected), v.minValue(min, expected), v.maxValue(max, expected));

const UNIT_MS = { seconds: 1000, minutes: 60_000, days: 86_400_000 } as const;

/** One millisecond up to `max` units; becomes milliseconds. */
export function duration(unit: keyof typeof UNIT_MS, max: number) {
  const expected = `a number of ${unit} above 0, at most ${max}`;
  const unitMs = UNIT_MS[unit];
  const units = v.pipe(v.number(expected), v.minValue(1 / unitMs, expected), v.maxValue(max, expected));
  return transform(units, (found) => Math.round(found * unitMs));
}

export function size(min: number, max: number) {
  const expected = `a number of bytes from ${min} to ${max}, or a size such as "512 MiB"`;
  return v.pipe(v.unknown(), v.transform(bytesIn), wholeNumber(min, max, expected));
}

function bytesIn(found: unknown): unknown {
  if (typeof found !== 'string') return found;
  const [, digits, prefix, binary] = /^([0-9]+(?:\.[0-9]+)?) ?(?:(?:([kmgt])(i)?)?b)?$/i.exec(found) ?? [];
  const power = prefix === undefined ? 0 : 1 + 'kmgt'.indexOf(prefix.toLowerCase());
  const factor = (binary === undefined ? 1000 : 1024) ** power;
  return digits === undefined ? found : Math.round(Number(digits) * factor);
}

export const listOf = <Item>(item: Type<Item>, what: string) => v.array(item, `a list of ${what}`);

export const trueOrFalse = () => v.boolean('true or false');

export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  v.picklist(values, `one of ${values.join(', ')}`);

const isText = (found: string) => found !== '' && !/\p{Cc}/u.test(found);

export const A_TEXT = 'a text that is not empty';

/** One line, not empty. */
export const text = (expected = A_TEXT, accepts: (found: string) => boolean = () => true) =>
  refine(v.string(expected), (found) => isText(found) && accepts(found), expected);

export const credentialName = () => text('the name of a systemd credential', (found) => !/^\.{1,2}$|\//.test(found));

export function id<Id extends string>(what: string, parse: (found: unknown) => Id | undefined) {
  const expected = `${what}: a whole number of at most 64 bits`;
  return readAs(v.unknown(), expected, parse);
}

/** With one slash before it, and none at its end. */
export const slashed = (part: string) => `/${part}`.replaceAll(/\/{2,}/g, '/').replace(/\/$/, '');

export function path(directory: string) {
  const expected = 'a path (written in full: ~ is not expanded)';
  const isPlain = (found: string) => !/^~[a-z_]|^%[a-z]\/|^\$\w|\$\{/i.test(found);
  const inFull = text(expected, (found) => !/^~(\/|$)/.test(found));
  const plain = refine(inFull, isPlain, 'a path (written in full: variables and names of users are not expanded)');
  return transform(plain, (found) => resolve(directory, found));
}

/** Paths of this machine by absolute paths of another one. */
export function pathPairs(directory: string) {
  const expected = 'paths of the server with paths of this machine, such as {/scratch: /mnt/scratch}';
  const isFine = (pairs: object): pairs is Readonly<Record<string, string>> =>
    Object.entries(pairs).every(([there, here]) => there.startsWith('/') && typeof here === 'string' && isText(here));
  return readAs(v.unknown(), expected, (found) => {
    if (!isSection(found) || !isFine(found)) return undefined;
    return Object.fromEntries(Object.entries(found).map(([there, here]) => [there, resolve(directory, here)]));
  });
}

/** A list of words. A program with a slash is a path, others are searched in PATH. */
export function command(directory: string) {
  const words = listOf(text('a text (put it in quotes)'), 'texts: the program and its arguments, without a shell');
  return transform(refine(words, isNotEmpty, 'at least the name of a program'), ([program = '', ...args]) => {
    const isRelativePath = program.includes('/') && !isAbsolute(program);
    return [isRelativePath ? resolve(directory, program) : program, ...args];
  });
}

/** Variables of the agent's own environment that a program gets, too. */
export function variableNames() {
  const name = text('the name of a variable', (found) => /^[A-Za-z_]\w*$/.test(found));
  return v.optional(listOf(name, 'names of variables such as [GNUPGHOME]'));
}

export const AN_ADDRESS = 'an address that starts with http:// or https://, without a password in it';

/** Kept as written. Credentials are refused: they would be secrets in the file. */
export function httpUrl(expected = AN_ADDRESS) {
  return text(expected, (found) => {
    if (/\s/.test(found) || !URL.canParse(found)) return false;
    const url = new URL(found);
    return /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === '';
  });
}

/** `host:port`, an IPv6 host in brackets. Port 0: any free port. */
export function hostAndPort() {
  const expected = 'an address and a port such as 127.0.0.1:9464';
  return readAs(text(expected), expected, hostAndPortIn);
}

function hostAndPortIn(found: string): { readonly host: string; readonly port: number } | undefined {
  const [, v6, name, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/]+)):([0-9]{1,5})$/.exec(found) ?? [];
  const host = v6 ?? name;
  const port = Number(digits);
  return host !== undefined && port <= 65_535 ? { host, port } : undefined;
}

/** The limit of a socket path is 107 bytes; a server first creates it under a longer name. */
const MAX_SOCKET_PATH_BYTES = 90;

/** `host:port`, or the path of a Unix socket, which contains a slash. */
export function placeToListen(directory: string) {
  const expected = `an address and a port such as 127.0.0.1:9470, or the path of a Unix socket (at most ${MAX_SOCKET_PATH_BYTES} bytes)`;
  return readAs(text(expected), expected, (found) => {
    if (!found.includes('/')) return hostAndPortIn(found);
    const file = resolve(directory, found);
    return Buffer.byteLength(file) <= MAX_SOCKET_PATH_BYTES ? { path: file } : undefined;
  });
}

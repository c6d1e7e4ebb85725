/**
 * Makes sentences of what the schema found: the key, what was expected and what was found. The value of anything that
 * may be a secret is never shown, only its type.
 */
import { distance } from 'fastest-levenshtein';
import type * as z from 'zod';
import { printable } from '../printable.ts';

type Path = readonly PropertyKey[];

export interface Problem {
  readonly path: Path;
  /** Whether the key itself is wrong, or its value. */
  readonly of: 'key' | 'value';
  readonly text: string;
}

/** The problems that `issues` name in `root`, the value that was checked. */
export function problemsOf(issues: readonly z.core.$ZodIssue[], root: unknown): Problem[] {
  return issues.flatMap((issue): Problem[] => {
    if (issue.code === 'unrecognized_keys') {
      // By the convention of `section`, the message is the list of the known keys.
      const known = issue.message.split(', ');
      return issue.keys.map((key) => ({ path: [...issue.path, key], of: 'key', text: unknownKey(key, known) }));
    }
    const given: unknown = issue.code === 'custom' ? issue.params?.['found'] : undefined;
    const found = given === undefined ? describe(issue.path, root) : String(given);
    return [{ path: issue.path, of: 'value', text: `expected ${issue.message}, found ${found}` }];
  });
}

/** A path as people write it: `watch[0].job`. */
export function pathText(path: Path): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = keyText(String(step));
      return index === 0 ? key : `.${key}`;
    })
    .join('');
}

const SECRET_WORDS =
  /^(pass|pas+wor[dt]|passwd|pwd|passphrase|(access|bearer)?tokens?|secrets?|sessioncodes?|credentials?)$/;
const SECRET_PATHS = /^auth$|(^|\.)auth\.(password|token|sessionCode)(File|Command|Credential)|passw|secret/i;

function unknownKey(key: string, known: readonly string[]): string {
  const word = key.toLowerCase().replaceAll(/[^a-z]/g, '');
  if (SECRET_WORDS.test(word)) {
    return (
      'expected no secret in this file; write it to a file of its own, readable only for the user of the agent, and ' +
      'name that file: passwordFile, tokenFile or sessionCodeFile (or ...Command, ...Credential) in the section auth'
    );
  }
  const near = nearest(key, known);
  return near === undefined ? `unknown key, expected one of ${known.join(', ')}` : `unknown key, did you mean ${near}?`;
}

/** The nearest of `known`, or undefined if none is near. Case, `_` and `-` count for nothing, nor does a missing end. */
function nearest(word: string, known: readonly string[]): string | undefined {
  // Longer words cannot be near any key, and the distance costs length times length.
  if (word.length > 40) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, letters: distance(plain(word), plain(candidate)) }))
    .filter(
      ({ candidate, letters }) =>
        letters <= Math.max(1, Math.floor(candidate.length / 3)) || isBeginning(plain(word), plain(candidate)),
    )
    .sort((a, b) => a.letters - b.letters);
  return ranked[0]?.candidate;
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[_-]/g, '');

/** Whether one of two words is the beginning of the other. */
const isBeginning = (a: string, b: string) => Math.min(a.length, b.length) >= 4 && (a.startsWith(b) || b.startsWith(a));

/** What stands at `path`, for a message. */
function describe(path: Path, root: unknown): string {
  const found = path.reduce<unknown>((value, step) => {
    const isInner = typeof value === 'object' && value !== null && Object.hasOwn(value, step);
    return isInner ? (value as Record<PropertyKey, unknown>)[step] : undefined;
  }, root);
  if (found === undefined) return 'nothing';
  if (found === null) return 'nothing (null)';
  if (Array.isArray(found)) return found.length === 0 ? 'an empty list' : 'a list';
  if (typeof found === 'object') return 'a section';
  const type = typeof found === 'string' ? 'text' : typeof found === 'boolean' ? 'boolean' : 'number';
  if (path.length === 0 || SECRET_PATHS.test(pathText(path))) return `a ${type} (not shown)`;
  return `${typeof found === 'string' ? quoted(found) : String(found)} (${type})`;
}

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)}...` : text);

/** In quotes, cut, safe on a terminal, and without the credentials of an address. */
function quoted(text: string): string {
  const shown = text.replace(/\/\/.*@/, '//***@').replaceAll(/(pass[a-z]*|secret|token)=[^&]*/gi, '$1=***');
  return printable(JSON.stringify(cut(shown, 80)));
}

/** A key as it is; of a strange one only what is safe to show (`{password:x}` in YAML is the key `password:x`). */
function keyText(key: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return cut(key, 40);
  const secret = /^["']?[A-Za-z_-]*(pass|token|secret|code|credential)[A-Za-z_-]*/i.exec(key);
  return secret === null ? `"${printable(cut(key, 40))}"` : `"${secret[0]}..."`;
}

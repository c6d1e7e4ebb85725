// Prints docs/configuration.md: the keys, types and defaults of the schema, with the comments of config.example.yaml.
// `node --import ./scripts/typescript.mjs scripts/make-configuration.mjs > docs/configuration.md`. A test compares the
// file with what this prints.
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { parse } from 'yaml';
import { configSchema } from '../src/config/schema.ts';

const HEAD = `# Configuration

Read this to look up a key. [config.example.yaml](../config.example.yaml) is a file to copy, with every key.
[commands.md](commands.md#configuration) describes where the agent looks for it, and how it is changed.

Unknown keys are errors. Relative paths start at the directory of the file; \`~\` is not expanded. Durations may be
fractions where no whole number is expected, and sizes text such as \`"512 MiB"\`. A value in *italics* is an
example; the others are defaults.
`;

/** Keys without a default in the schema: the one in the example is that of the protocol. */
const COMPUTED = ['service.path', 'service.concurrency', 'service.soapVersion', 'service.jobsUrl'];
const SECTIONS_OF_EXAMPLES = ['watch', 'notify'];

/** Without the wrappers for defaults, null, preparation and rules. */
function inner(schema) {
  const next = schema.wrapped ?? schema.pipe?.findLast(({ kind }) => kind === 'schema');
  return next === undefined ? schema : inner(next);
}

/** Each key that has a value, as a path of names; of a list of sections, those of one entry. */
function leaves(schema, path = []) {
  const { entries, item } = inner(schema);
  if (entries !== undefined) return Object.entries(entries).flatMap(([key, value]) => leaves(value, [...path, key]));
  if (item !== undefined && inner(item).entries !== undefined) return leaves(item, path);
  return [{ name: path.join('.'), schema }];
}

/** What an error names as expected in place of a value that no key takes. */
function expectedOf(schema) {
  const [issue] = [{}, 5].flatMap((wrong) => v.safeParse(schema, wrong).issues ?? []);
  return (issue?.message ?? '')
    .replace(/^one of (.*)$/, (_, words) => `\`${words.replaceAll(', ', '`, `')}\``)
    .replace(' to 9007199254740991', ' on')
    .replace(' (written in full: ~ is not expanded)', '');
}

/** A comment without the list of values at its start, if the column before it has the same ones. */
function withoutChoices(comment, expected) {
  const choices = /^[a-z-]+(?: \| [a-z-]+)+(?:\. |$)/.exec(comment)?.[0] ?? '';
  const isSame = choices.split(/[ |.]+/).every((word) => expected.includes(word));
  return comment === expected ? '' : isSame ? comment.slice(choices.length) : comment;
}

/** The values and comments of the example by the names of their keys, and the texts above its sections. */
function readExample() {
  const file = readFileSync(new URL('../config.example.yaml', import.meta.url), 'utf8');
  const keys = new Map();
  const intros = new Map();
  const open = [];
  let last;
  let prose = [];
  for (const line of file.slice(file.indexOf('\nservice:')).split('\n')) {
    const more = /^\s*#\s{10,}#\s(.*)$/.exec(line)?.[1];
    const plain = line.replace(/^( *)# ( *(?:- )?[a-z][A-Za-z]+:)/, '$1$2');
    const key = /^( *(?:- )?)([a-z][A-Za-z]+):(?: (.*?))?(?:\s+# (.*))?$/.exec(plain);
    if (more !== undefined) last.comment += ` ${more}`;
    else if (key !== null) {
      const [, { length: depth }, name, value = '', comment = ''] = key;
      while (open.length > 0 && open.at(-1).depth >= depth) open.pop();
      open.push({ depth, name });
      last = {
        isSet: plain === line,
        value: value.trim(),
        comment: [...(depth > 0 ? prose : []), comment].join(' ').trim(),
      };
      if (depth === 0) intros.set(name, prose.join(' '));
      const full = open.map((parent) => parent.name).join('.');
      if (!keys.has(full)) keys.set(full, last);
      prose = [];
    } else {
      const words = /^\s*# (.*)$/.exec(line)?.[1];
      prose = words === undefined ? [] : [...prose, words];
    }
  }
  return { keys, intros };
}

/** The default as the example has it, which must be that of the schema; or the example in italics. */
function defaultOf({ name, schema }, { value, isSet }) {
  const [written, unset] = [parse(value), undefined].map((found) => v.safeParse(schema, found));
  if (!written.success) throw new Error(`config.example.yaml: ${name}: ${value} is refused`);
  const hasDefault = unset.success && unset.output !== undefined;
  if (COMPUTED.includes(name) || (hasDefault && isDeepStrictEqual(written.output, unset.output))) return `\`${value}\``;
  if (hasDefault && !SECTIONS_OF_EXAMPLES.includes(name.split('.')[0]) && !isSet)
    throw new Error(`config.example.yaml: ${name}: ${value} is not the default`);
  return `*\`${value}\`*`;
}

const linked = (text) => text.replaceAll(/docs\/(\w+\.md)/g, '[$1]($1)');

const { keys, intros } = readExample();
const byName = new Map(leaves(configSchema('/')).map((leaf) => [leaf.name, leaf]));
const missing = [...byName.keys()].filter((name) => !keys.has(name));
if (missing.length > 0) throw new Error(`config.example.yaml has no ${missing.join(', ')}`);
process.stdout.write(`${HEAD}\n| key | value | expected | meaning |\n|---|---|---|---|\n`);
const print = (...cells) =>
  process.stdout.write(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`);
let section = '';
for (const [name, shown] of keys) {
  const leaf = byName.get(name);
  if (leaf === undefined) continue;
  const [top] = name.split('.');
  if (top !== section && intros.get(top) !== '') print(`**${top}**`, '', '', linked(intros.get(top)));
  section = top;
  const expected = expectedOf(leaf.schema);
  print(`\`${name}\``, defaultOf(leaf, shown), expected, withoutChoices(shown.comment, expected));
}

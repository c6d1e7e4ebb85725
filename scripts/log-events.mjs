// The log events of the source, by its syntax: level, message with `{}` for what varies, names of fields, and whether the
// source shows only some of its fields.
import fs from 'node:fs';
import path from 'node:path';
import { parseAst } from 'rolldown/parseAst';

const LEVELS = ['debug', 'info', 'warn', 'error'];
/** In the place of fields that come from elsewhere. */
const MORE = '...';

function* walk(node) {
  if (node === null || typeof node !== 'object') return;
  if (typeof node.type === 'string') yield node;
  for (const value of Object.values(node)) yield* walk(value);
}

/** `x`, `this.#x` and `a.b.x` are all `x`. */
const nameOf = (node) => (node?.property === undefined || node.computed ? node?.name : nameOf(node.property));

/** What a name stands for: of this file, or else the only one of that name. */
function valuesOf(name, file, declared) {
  const all = declared.filter((each) => each.name === name);
  const here = all.filter((each) => each.file === file);
  return here.length > 0 || all.length !== 1 ? here : all;
}

/** The texts that an expression may be; `{}` for what a function is given. */
function textsOf(node, file, declared) {
  const textsIn = (nodes) => nodes.flatMap((each) => textsOf(each, file, declared));
  if (node === undefined) return ['{}'];
  if (node.type === 'Literal') return [node.value];
  if (node.type === 'ConditionalExpression') return textsIn([node.consequent, node.alternate]);
  if (node.type === 'ObjectExpression') return textsIn(node.properties.map(({ value }) => value));
  if (node.type === 'MemberExpression') return textsIn([node.object]);
  const values = valuesOf(nameOf(node), file, declared).map(({ value }) => value);
  return node.type !== 'Identifier' ? ['a text that is made {}'] : values.length === 0 ? ['{}'] : textsIn(values);
}

function fieldsOf(node, file, declared) {
  const fieldsIn = (nodes) => nodes.flatMap((each) => fieldsOf(each, file, declared));
  if (node.type === 'Identifier') return fieldsIn(valuesOf(node.name, file, declared).map(({ value }) => value));
  if (node.type === 'ConditionalExpression') return fieldsIn([node.consequent, node.alternate]);
  if (node.type !== 'ObjectExpression') return [MORE];
  return node.properties.flatMap(({ key, argument }) => (key === undefined ? fieldsIn([argument]) : [nameOf(key)]));
}

/** The levels that a call logs at; none if it is no call of a log. */
function levelsOf({ type, object, property, computed }) {
  if (type !== 'MemberExpression' || !/^log$/i.test(nameOf(object))) return [];
  const words = computed ? [...walk(property)].map(({ value }) => value) : [nameOf(property)];
  return LEVELS.filter((level) => words.includes(level));
}

export function logEventsOf(root) {
  const files = fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  const nodes = files
    .filter((file) => file.endsWith('.ts') && !file.startsWith(path.join('view', 'page')))
    .flatMap((file) => {
      const program = parseAst(fs.readFileSync(path.join(root, file), 'utf8'), { lang: 'ts' });
      return [...walk(program)].map((node) => ({ file, node }));
    });
  const declared = nodes.flatMap(({ file, node: { id, init } }) =>
    id && init ? [{ file, name: id.name, value: init }] : [],
  );
  return nodes.flatMap(({ file, node: { type, callee, arguments: args } }) => {
    if (type !== 'CallExpression') return [];
    const levels = levelsOf(callee);
    // A function that logs the phrase which it is given.
    const isPassedOn = callee.property?.type === 'PrivateIdentifier' && nameOf(callee) === 'warn';
    if (levels.length === 0 && !isPassedOn) return [];
    const fields = new Set(isPassedOn ? [MORE] : fieldsOf(args[0], file, declared));
    const hasMoreFields = fields.delete(MORE);
    const level = isPassedOn ? 'warn' : levels.join(', ');
    return textsOf(args[1], file, declared).map((message) => {
      return { file, level, message, fields: [...fields].sort(), hasMoreFields };
    });
  });
}

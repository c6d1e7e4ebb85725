// The log events of the source, by its syntax: level, message with `{}` for what varies, names of fields, and whether the
// source shows only some of its fields.
import fs from 'node:fs';
import path from 'node:path';
import { parseAst } from 'rolldown/parseAst';

const LEVELS = ['debug', 'info', 'warn', 'error'];
/** Functions that log the phrase which they are given, and where it is among their arguments. */
const FORWARDERS = new Map([['#warn', 1]]);

/** In the place of fields that come from elsewhere. */
const MORE = '...';

const isNode = (value) => typeof value === 'object' && value !== null && typeof value.type === 'string';
const nodeOf = (value) => (isNode(value) ? value : undefined);
const nodesOf = (value) => (Array.isArray(value) ? value.filter(isNode) : []);

function* walk(node) {
  yield node;
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) yield* walk(child);
  }
}

/** `x`, `this.#x` and `a.b.x` are all `x`, with `#` where it is private. */
function nameOf(node) {
  if (node === undefined) return '';
  if (node.type === 'MemberExpression' && node.computed !== true) return nameOf(nodeOf(node.property));
  if (node.type === 'PrivateIdentifier') return `#${node.name}`;
  return typeof node.name === 'string' ? node.name : '';
}

class Sources {
  files;
  /** What names stand for: constants by their values, functions by their bodies. */
  #declared = new Map();

  constructor(root) {
    const names = fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    this.files = names
      .filter((name) => !name.startsWith(path.join('view', 'page')))
      .sort()
      .map((name) => [name, nodeOf(parseAst(fs.readFileSync(path.join(root, name), 'utf8'), { lang: 'ts' }))])
      .flatMap(([name, program]) => (program === undefined ? [] : [[name, program]]));
    for (const [file, program] of this.files) {
      for (const node of walk(program)) {
        const value = nodeOf(node.init) ?? (node.type === 'FunctionDeclaration' ? node : undefined);
        const name = nameOf(nodeOf(node.id));
        if (value !== undefined && name !== '')
          this.#declared.set(name, [...(this.#declared.get(name) ?? []), [file, value]]);
      }
    }
  }

  /** Of this file, or else the only one of that name. */
  #valuesOf(name, file) {
    const all = this.#declared.get(name) ?? [];
    const here = all.filter(([where]) => where === file);
    return (here.length > 0 ? here : all.length === 1 ? all : []).map(([, value]) => value);
  }

  /** The texts that an expression may be; `{}` for what is not in the source. */
  textsOf(node, file) {
    switch (node?.type) {
      case 'Literal':
        return typeof node.value === 'string' ? [node.value] : ['{}'];
      case 'TemplateLiteral':
        return [
          nodesOf(node.quasis)
            .map(({ value }) => value.cooked)
            .join('{}'),
        ];
      case 'ConditionalExpression':
        return [node.consequent, node.alternate].flatMap((branch) => this.textsOf(nodeOf(branch), file));
      case 'ArrowFunctionExpression':
      case 'FunctionDeclaration':
        return this.#returnedBy(node, file);
      case 'ObjectExpression':
        return nodesOf(node.properties).flatMap(({ value }) => this.textsOf(nodeOf(value), file));
      case 'MemberExpression':
        return node.computed === true ? this.textsOf(nodeOf(node.object), file) : ['{}'];
      case 'CallExpression':
        return this.#named(nameOf(nodeOf(node.callee)), file);
      case 'Identifier':
        return this.#named(nameOf(node), file);
      default:
        return ['{}'];
    }
  }

  #named(name, file) {
    const values = this.#valuesOf(name, file).filter((value) => nameOf(value) !== name);
    return values.length === 0 ? ['{}'] : values.flatMap((value) => this.textsOf(value, file));
  }

  #returnedBy(node, file) {
    const body = nodeOf(node.body);
    if (body === undefined || body.type !== 'BlockStatement') return this.textsOf(body, file);
    const returned = [...walk(body)].filter(({ type }) => type === 'ReturnStatement');
    return returned.flatMap(({ argument }) => (isNode(argument) ? this.textsOf(argument, file) : []));
  }

  fieldsOf(node, file) {
    if (node?.type === 'Identifier')
      return this.#valuesOf(nameOf(node), file).flatMap((value) => this.fieldsOf(value, file));
    if (node?.type === 'ConditionalExpression')
      return [node.consequent, node.alternate].flatMap((branch) => this.fieldsOf(nodeOf(branch), file));
    if (node?.type !== 'ObjectExpression') return [MORE];
    return nodesOf(node.properties).flatMap((property) =>
      property.type === 'SpreadElement'
        ? this.fieldsOf(nodeOf(property.argument), file)
        : [nameOf(nodeOf(property.key))],
    );
  }
}

/** The levels that a call logs at; none if it is no call of a log. */
function levelsOf(callee) {
  if (callee.type !== 'MemberExpression' || !/^#?log$/i.test(nameOf(nodeOf(callee.object)))) return [];
  const property = nodeOf(callee.property);
  if (property === undefined) return [];
  if (callee.computed !== true) return LEVELS.filter((level) => level === nameOf(property));
  const words = [...walk(property)].map(({ value }) => value);
  return LEVELS.filter((level) => words.includes(level));
}

export function logEventsOf(root) {
  const sources = new Sources(root);
  const events = [];
  for (const [file, program] of sources.files) {
    for (const node of walk(program)) {
      if (node.type !== 'CallExpression') continue;
      const callee = nodeOf(node.callee);
      if (callee === undefined) continue;
      const args = nodesOf(node.arguments);
      const levels = levelsOf(callee);
      if (levels.length > 0) {
        const named = new Set(sources.fieldsOf(args[0], file));
        const hasMoreFields = named.delete(MORE);
        for (const message of sources.textsOf(args[1], file))
          events.push({ file, level: levels.join(', '), message, fields: [...named].sort(), hasMoreFields });
        continue;
      }
      const forwarder = FORWARDERS.get(nameOf(callee));
      if (forwarder === undefined) continue;
      for (const message of sources.textsOf(args[forwarder], file))
        events.push({ file, level: 'warn', message, fields: [], hasMoreFields: true });
    }
  }
  return events;
}

// The mistakes that `npm run test:mutants` can make in a source: each is a kind, a range of the text, and what stands there
// instead. Those of a compiler's type (a needed argument dropped) are sorted out by the types afterwards.
import { parseAst } from 'rolldown/parseAst';

const OTHER = {
  ...{ '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===' },
  ...{ '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '+=': '-=', '-=': '+=', '++': '--', '--': '++' },
};
const OTHER_CALL = {
  ...{ min: 'max', max: 'min', some: 'every', every: 'some', startsWith: 'endsWith', endsWith: 'startsWith' },
  ...{ floor: 'ceil', ceil: 'floor', unshift: 'push', push: 'unshift', pop: 'shift', shift: 'pop' },
};
/** A call of these may be left out of a chain. */
const LEFT_OUT =
  /^(?:filter|slice|sort|toSorted|reverse|toReversed|trim|trimEnd|trimStart|toLowerCase|concat|flat|padStart)$/;

/** What is put in the place of parts of a node, as [kind, part, text]; a text of `undefined` takes the part out of its list. */
const OPERATORS = {
  IfStatement: ({ test, alternate }) => [
    ...decided(test),
    ...(alternate === null ? [] : [['a branch left out', alternate, '{}']]),
  ],
  ConditionalExpression: ({ test }) => decided(test),
  WhileStatement: ({ test }) => [['a condition decided', test, 'Boolean(0)']],
  LogicalExpression: ({ left, right, operator }, text) => [
    [`what is left of ${operator} only`, undefined, text(left)],
    [`what is right of ${operator} only`, undefined, text(right)],
  ],
  BinaryExpression: (node, text) => operated(node, text),
  AssignmentExpression: (node, text) => operated(node, text),
  UpdateExpression: ({ operator, argument, prefix }, text) => [
    ['the other operator', undefined, prefix ? OTHER[operator] + text(argument) : text(argument) + OTHER[operator]],
  ],
  UnaryExpression: ({ operator, argument }, text) =>
    operator === '!' || operator === '-' ? [[`no ${operator}`, undefined, text(argument)]] : [],
  Literal: (node) => literals(node),
  AwaitExpression: ({ argument }, text) => [['an await dropped', undefined, text(argument)]],
  TryStatement: ({ finalizer }) => (finalizer?.body.length > 0 ? [['a finally emptied', finalizer, '{}']] : []),
  ExpressionStatement: ({ expression, directive }) =>
    directive == null && expression.type !== 'AwaitExpression' ? [['a statement dropped', undefined, ';']] : [],
  CallExpression: (node, text) => [...calls(node, text), ...called(node, text)],
  NewExpression: (node, text) => calls(node, text),
  ObjectExpression: ({ properties }) => properties.map((each) => ['an option not passed on', each, undefined]),
  ArrayExpression: ({ elements }) =>
    elements.length > 1
      ? elements.flatMap((each) => (each === null ? [] : [['an element dropped', each, undefined]]))
      : [],
  SwitchCase: ({ test, consequent }) =>
    test !== null && consequent.length > 0 ? [['a case that never comes', test, 'Symbol.for("none")']] : [],
};

/** @returns the mutations of a source; `start` and `end` are of its text */
export function mutationsOf(source, file) {
  const found = [];
  const textOf = ({ start, end }) => source.slice(start, end);
  /** What a function returns is awaited by its caller anyway. */
  const equivalent = new Set();
  visit(parsed(source, file), (node, isTried) => {
    if (!isTried) equivalent.add(node.type === 'ReturnStatement' ? node.argument : node.body);
    if (node.type === 'AwaitExpression' && equivalent.has(node)) return;
    for (const [kind, part = node, instead] of OPERATORS[node.type]?.(node, textOf) ?? []) {
      const { start, end } = instead === undefined ? inItsList(node, part) : part;
      if (source.slice(start, end) === instead) continue;
      const line = source.slice(0, start).split('\n').length;
      found.push({ file, line, kind, start, end, instead: instead ?? '' });
    }
  });
  return found;
}

function parsed(source, file) {
  return parseAst(source, { lang: file.endsWith('x') ? 'tsx' : 'ts' });
}

function decided(test) {
  return test.type === 'Literal' ? [] : ['Boolean(1)', 'Boolean(0)'].map((text) => ['a condition decided', test, text]);
}

function operated({ left, right, operator }, text) {
  const other = OTHER[operator];
  const kind = /[<>]/.test(operator) ? 'a comparison at its edge' : 'the other operator';
  return other === undefined ? [] : [[kind, undefined, `${text(left)} ${other} ${text(right)}`]];
}

function literals({ value, raw, regex }) {
  if (typeof value === 'boolean') return [['the other truth', undefined, `${!value}`]];
  if (typeof value === 'number') {
    if (raw.startsWith('0o')) return [['another mode', undefined, raw === '0o666' ? '0o600' : '0o666']];
    return value >= 1_000
      ? [
          ['another unit', undefined, `${value / 1_000}`],
          ['another unit', undefined, `${value * 1_000}`],
        ]
      : [['another number', undefined, `${value + 1}`]];
  }
  if (regex !== undefined && regex !== null) {
    const { pattern, flags } = regex;
    const anchored = [...pattern.matchAll(/^\^|\$$/g)].map(
      ({ index }) => pattern.slice(0, index) + pattern.slice(index + 1),
    );
    return anchored.filter((each) => each !== '').map((each) => ['an anchor dropped', undefined, `/${each}/${flags}`]);
  }
  return typeof value === 'string' && /^[\w.:/-]+$/.test(value) ? [['another text', undefined, `'${value}x'`]] : [];
}

function calls({ callee, arguments: args }, text) {
  const isSymmetric = /^Math\.(?:min|max)$/.test(text(callee));
  // A comma is what join() puts between them anyway.
  const isJoin = /\.join$/.test(text(callee));
  const dropped = isJoin ? [] : args.map((each) => ['an argument dropped', each, undefined]);
  const swapped = args.slice(isSymmetric ? args.length : 1).map((each, index) => {
    const first = args[index];
    return ['arguments swapped', { start: first.start, end: each.end }, `${text(each)}, ${text(first)}`];
  });
  return [...dropped, ...swapped];
}

function called({ callee, arguments: args, optional }, text) {
  if (callee.type !== 'MemberExpression' || callee.computed || optional) return [];
  const { object, property } = callee;
  const other = Object.hasOwn(OTHER_CALL, property.name) ? OTHER_CALL[property.name] : undefined;
  return [
    ...(other === undefined ? [] : [[`${other} in its place`, property, other]]),
    ...(LEFT_OUT.test(property.name) ? [['a call left out', undefined, text(object)]] : []),
    ...(property.name === 'then' && args.length > 0 ? [['a call left out', undefined, text(object)]] : []),
  ];
}

/** The part and what separates it from its neighbour. */
function inItsList(node, part) {
  const list = node.arguments ?? node.properties ?? node.elements;
  const index = list.indexOf(part);
  const next = list[index + 1];
  if (next) return { start: part.start, end: next.start };
  const before = list[index - 1];
  return { start: before ? before.end : part.start, end: part.end };
}

/** Each node that is no type, no import, and no key, and whether it is within a `try` of its function. */
function visit(node, onNode, isTried = false) {
  if (Array.isArray(node)) for (const each of node) visit(each, onNode, isTried);
  if (typeof node?.type !== 'string') return;
  if (/^(?:Import|Export(?:All|Specifier))/.test(node.type) || node.declare === true) return;
  if (node.type.startsWith('TS') && !/^TS(?:As|NonNull|Satisfies|ParameterProperty|Enum)/.test(node.type)) return;
  onNode(node, isTried);
  const isInside = node.type === 'TryStatement' || (isTried && !/Function/.test(node.type));
  for (const [key, value] of Object.entries(node)) {
    const isName = key === 'key' && node.computed !== true;
    if (!isName && key !== 'typeAnnotation' && key !== 'typeArguments') visit(value, onNode, isInside);
  }
}

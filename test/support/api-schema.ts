/** docs/openapi.json: its routes, and whether a response has the form that it describes. */
import fs from 'node:fs';

interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
}

interface Operation {
  readonly responses: Readonly<
    Record<'200', { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

const DOCUMENT = JSON.parse(fs.readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

/** `GET /v1/jobs/:job`. */
export const documentedRoutes = (): string[] =>
  Object.entries(DOCUMENT.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
  );

/** Where a response differs from what the document says of this route, as `jobs[0].state: ...`; empty: nowhere. */
export function differences(route: string, value: unknown): string[] {
  const [method = '', path = ''] = route.split(' ');
  const operation = DOCUMENT.paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
  const [content] = Object.values(operation?.responses['200'].content ?? {});
  return content === undefined ? [`${route} is not documented`] : differencesOf(content.schema, value, '');
}

export const errorDifferences = (value: unknown) => differencesOf({ $ref: '#/components/schemas/Error' }, value, '');

const typeOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

function differencesOf(schema: Schema, value: unknown, at: string): string[] {
  const { $ref, anyOf, type, properties, items, required = [], additionalProperties = true } = schema;
  if ($ref !== undefined) {
    const named = DOCUMENT.components.schemas[$ref.split('/').pop() ?? ''];
    return named === undefined ? [`${at}: no schema ${$ref}`] : differencesOf(named, value, at);
  }
  if (anyOf !== undefined) {
    const all = anyOf.map((one) => differencesOf(one, value, at));
    return all.some(({ length }) => length === 0) ? [] : (all[0] ?? []);
  }
  const found = typeOf(value);
  const types = type === undefined ? [found] : [type].flat();
  const isType = types.includes(found) || (types.includes('integer') && Number.isInteger(value));
  if (!isType) return [`${at}: ${found} is no ${types.join(' or ')}`];
  if ('const' in schema && value !== schema.const) return [`${at}: ${String(value)} is not ${String(schema.const)}`];
  if (schema.enum?.includes(value) === false) return [`${at}: ${String(value)} is none of ${schema.enum.join(', ')}`];
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(String(value)))
    return [`${at}: ${String(value)}`];
  if (Array.isArray(value) && items !== undefined)
    return value.flatMap((one, index) => differencesOf(items, one, `${at}[${index}]`));
  if (found !== 'object' || properties === undefined) return [];
  const keys = Object.keys(value as object);
  return [
    ...required.filter((key) => !keys.includes(key)).map((key) => `${at}.${key} is missing`),
    ...Object.entries(value as object).flatMap(([key, one]) => {
      const known = properties[key];
      if (known === undefined) return additionalProperties ? [] : [`${at}.${key} is not documented`];
      return differencesOf(known, one, `${at}.${key}`);
    }),
  ];
}

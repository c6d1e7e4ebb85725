/** What SQLite throws when a statement runs, as errors with a code of the one table and the name of the file. */
import type { SqliteDatabase } from './database.ts';

type Call = (...args: unknown[]) => unknown;

/** `db` as the tables use it: what its statements throw goes through `translate`. */
export function withStoreErrors(db: SqliteDatabase, translate: (error: unknown) => Error): SqliteDatabase {
  const translated = <T extends object>(target: T, onResult: (name: PropertyKey, result: unknown) => unknown): T =>
    new Proxy(target, {
      get(object, name) {
        const member: unknown = Reflect.get(object, name);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          try {
            return onResult(name, (member as Call).apply(object, args));
          } catch (error) {
            throw translate(error);
          }
        };
      },
    });
  const ofStatement = (statement: unknown) => translated(statement as object, (_, result) => result);
  return translated(db, (name, result) => (name === 'prepare' ? ofStatement(result) : result));
}

/** Sources in a process of their own: Node.js 20 does not read TypeScript. */

/** What Node.js is given before a script that imports from src/. */
export const READS_TYPESCRIPT = ['--import', new URL('../../scripts/typescript.mjs', import.meta.url).href] as const;

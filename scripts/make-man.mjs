// Makes docs/agent.1 of the built program: `npm run build && node scripts/make-man.mjs`. A test holds it against them.
import { writeFileSync } from 'node:fs';

const { manPageOf, programOf } = await import(new URL('../dist/cli/program.js', import.meta.url));
writeFileSync(new URL('../docs/agent.1', import.meta.url), manPageOf(programOf()));

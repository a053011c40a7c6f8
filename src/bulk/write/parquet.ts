/** Owns the output as a Parquet file: built from the records at the end, a row group at a time. */
import { open, type FileHandle } from 'node:fs/promises';
import type { SchemaElement } from 'hyparquet';
import type { OutputFormat, OutputShape } from './format.ts';
import { elementsOf } from './format.ts';
import { isSigned } from './packed.ts';
import { encodeRecords, groupsOf, hasWholeIds, type Recorded } from './records.ts';

/** A Parquet file of a shape. */
export function parquet(shape: OutputShape): OutputFormat {
  return {
    head: Buffer.alloc(0),
    encode: (embedded) => encodeRecords(embedded, shape),
    async complete({ workPath, builtPath }) {
      const isWhole = await hasWholeIds(workPath, shape);
      const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
      const handle = await open(builtPath, 'w');
      try {
        const bytes = new ByteWriter();
        const file = new ParquetWriter({
          writer: bytes,
          schema: schemaOf(shape, isWhole) as never,
          // Components of vectors hardly repeat: neither dictionaries nor compression make them smaller.
          codec: 'UNCOMPRESSED',
          statistics: false,
          createdBy: 'trivec',
        });
        for await (const group of groupsOf(workPath, shape)) {
          await file.write({ columnData: columnsOf(group, shape, isWhole), rowGroupSize: group.length });
          await flush(bytes, handle);
        }
        await file.finish();
        await flush(bytes, handle);
        await handle.sync();
      } finally {
        await handle.close();
      }
      return builtPath;
    },
  };
}

/** Moves what was written to the file; offsets go on counting. */
async function flush(writer: { getBytes(): Uint8Array; index: number }, handle: FileHandle): Promise<void> {
  const bytes = writer.getBytes();
  let done = 0;
  while (done < bytes.length) done += (await handle.write(bytes, done)).bytesWritten;
  writer.index = 0;
}

const list = (name: string, element: SchemaElement | readonly SchemaElement[]): SchemaElement[] => [
  { name, repetition_type: 'REQUIRED', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  ...(Array.isArray(element) ? (element as readonly SchemaElement[]) : [element as SchemaElement]),
];

function schemaOf(shape: OutputShape, isWhole: boolean): SchemaElement[] {
  const number = (type: 'FLOAT' | 'INT32'): SchemaElement => ({ name: 'element', type, repetition_type: 'REQUIRED' });
  const component = shape.output === null || shape.kind === 'sparse' ? number('FLOAT') : integerOf(shape.output);
  const columns: SchemaElement[][] = [
    [{ name: 'index', type: 'INT64', repetition_type: 'REQUIRED' }],
    ...(shape.hasIds ? [[idOf(isWhole)]] : []),
    ...vectorColumns(shape.kind, component, number('INT32')),
  ];
  return [{ name: 'root', num_children: columns.length }, ...columns.flat()];
}

function vectorColumns(kind: OutputShape['kind'], component: SchemaElement, term: SchemaElement): SchemaElement[][] {
  switch (kind) {
    case 'dense':
      return [list('embedding', component)];
    case 'sparse':
      return [list('indices', term), list('values', component)];
    case 'multi':
      return [list('matrix', list('element', component))];
  }
}

const integerOf = (output: NonNullable<OutputShape['output']>): SchemaElement => ({
  name: 'element',
  type: 'INT32',
  converted_type: isSigned(output) ? 'INT_8' : 'UINT_8',
  repetition_type: 'REQUIRED',
});

const idOf = (isWhole: boolean): SchemaElement =>
  isWhole
    ? { name: 'id', type: 'INT64', repetition_type: 'REQUIRED' }
    : { name: 'id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' };

type Column = { name: string; data: unknown[]; encoding?: 'PLAIN' };

function columnsOf(group: readonly Recorded[], shape: OutputShape, isWhole: boolean): never[] {
  const columns: Column[] = [
    { name: 'index', data: group.map(({ index }) => BigInt(index)) },
    ...(shape.hasIds ? [{ name: 'id', data: group.map(({ id }) => (isWhole ? BigInt(id ?? 0) : String(id))) }] : []),
    ...valueColumns(group, shape),
  ];
  return columns.map((column) => ({ ...column, encoding: 'PLAIN' })) as never[];
}

function valueColumns(group: readonly Recorded[], shape: OutputShape): Column[] {
  switch (shape.kind) {
    case 'dense':
      return [{ name: 'embedding', data: group.map(({ numbers }) => Array.from(numbers)) }];
    case 'sparse':
      return [
        { name: 'indices', data: group.map(({ indices }) => Array.from(indices ?? [])) },
        { name: 'values', data: group.map(({ numbers }) => Array.from(numbers)) },
      ];
    case 'multi':
      return [{ name: 'matrix', data: group.map(({ numbers }) => rowsOf(numbers, elementsOf(shape))) }];
  }
}

function rowsOf(numbers: Recorded['numbers'], elements: number): number[][] {
  const starts = Array.from({ length: numbers.length / elements }, (_, row) => row * elements);
  return starts.map((start) => Array.from(numbers.subarray(start, start + elements)));
}

# Writes the files beside it (pyarrow 26, polars 2.1, DuckDB 2.0): python make.py FOLDER
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.feather as fe, numpy as np, polars as pl, duckdb, os, sys
out=sys.argv[1]; os.makedirs(out,exist_ok=True)
a=[f'v{i%7}' for i in range(40)]; b=[f'v{(i*i+1)%11}' for i in range(40)]; w=[i/4 for i in range(40)]
t=pa.table({'src':a,'dst':b,'weight':w})
n=pa.table({'src':[i%7 for i in range(40)],'dst':[(i*i+1)%11-3 for i in range(40)],'weight':w})
for name,x in [('text',t),('ints',n)]:
    pq.write_table(x,f'{out}/pyarrow-{name}.parquet',compression='snappy')
    pq.write_table(x,f'{out}/pyarrow-{name}-v2.parquet',compression='zstd',data_page_version='2.0')
    pl.from_arrow(x).write_parquet(f'{out}/polars-{name}.parquet')
    pl.from_arrow(x).write_ipc(f'{out}/polars-{name}.arrow',compression='lz4')
    duckdb.sql(f"COPY x TO '{out}/duckdb-{name}.parquet' (FORMAT parquet)")
    duckdb.sql(f"COPY x TO '{out}/duckdb-{name}-v2.parquet' (FORMAT parquet, PARQUET_VERSION v2)")
    fe.write_feather(x,f'{out}/pyarrow-{name}.feather')
pq.write_table(n,f'{out}/pyarrow-deltas.parquet',use_dictionary=False,column_encoding={'src':'DELTA_BINARY_PACKED','dst':'DELTA_BINARY_PACKED','weight':'BYTE_STREAM_SPLIT'})
pq.write_table(t,f'{out}/pyarrow-deltas-text.parquet',use_dictionary=False,column_encoding={'src':'DELTA_BYTE_ARRAY','dst':'DELTA_LENGTH_BYTE_ARRAY','weight':'PLAIN'})
pq.write_table(n,f'{out}/pyarrow-brotli.parquet',compression='brotli')
# What older readers of hopmesh refused: a dictionary with more values than its column
# has rows, and text of more than 64 bytes on average.
import pandas as pd
c=pd.Categorical([f'c{i}' for i in range(40)],categories=[f'c{i}' for i in range(5000)])
pd.DataFrame({'src':c,'dst':c[::-1]}).to_parquet(f'{out}/pandas_categories.parquet')
long=['https://example.org/'+f'{i:06d}'*50 for i in range(6000)]
u=pa.table({'src':long,'dst':long[::-1]})
duckdb.sql(f"COPY u TO '{out}/duckdb_long.parquet' (FORMAT parquet, COMPRESSION zstd)")
pl.from_arrow(u).write_parquet(f'{out}/polars_long.parquet',compression='zstd')
# A row group without rows, whose chunks begin nowhere.
pq.write_table(n.slice(0,0),f'{out}/pyarrow_empty.parquet')
# Tables of nodes, as each writes them by default.
import pyarrow.csv as pc
c={'id':[f'v{i}' for i in range(12)],'label':['abc'[i%3] for i in range(12)],'train_mask':[i%3==0 for i in range(12)],'val_mask':[i%3==1 for i in range(12)],'test_mask':[i%3==2 for i in range(12)],'height':[i/4 for i in range(12)],'age':list(range(12))}
d=pd.DataFrame(c); d['label']=d['label'].astype('category'); p=pl.DataFrame(c); v=pa.table(c)
d.to_csv(f'{out}/nodes_pandas.csv',index=False); d.to_parquet(f'{out}/nodes_pandas.parquet'); d.to_feather(f'{out}/nodes_pandas.feather')
p.write_csv(f'{out}/nodes_polars.csv'); p.write_parquet(f'{out}/nodes_polars.parquet'); p.write_ipc(f'{out}/nodes_polars.arrow')
duckdb.sql(f"COPY v TO '{out}/nodes_duckdb.csv'"); duckdb.sql(f"COPY v TO '{out}/nodes_duckdb.parquet'")
pc.write_csv(v,f'{out}/nodes_pyarrow.csv'); pq.write_table(v,f'{out}/nodes_pyarrow.parquet'); fe.write_feather(v,f'{out}/nodes_pyarrow.feather')

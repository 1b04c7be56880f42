"""Stand-ins for HASTE's two container images.

Each image is a folder with an executable ``entrypoint`` that takes the command line of a Batch task and runs it as an
ordinary process. The work is small but real: GeoTIFFs, GeoPackages, TensorBoard event files and logs are in the
formats, and under the names, that HASTE's containers use. Environment variables of the stand-ins:

``HASTE_LOCAL_PYTHON``   interpreter that has numpy and rasterio (default ``python3``)
``HASTE_LOCAL_SECONDS``  extra running time in seconds, spread over the steps or epochs (default 0)
``HASTE_LOCAL_FAIL``     ``1`` makes the task fail with exit code 1 the way the real container fails
"""
